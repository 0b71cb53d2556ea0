"""Choosing the next token from logits: greedily, or by a seeded draw among the likely ones."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import MinferError


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose. The cuts are made in this order, as llama.cpp's default chain makes them; temperature comes last."""

    temperature: float = 0.8
    """0: the most likely token, always. Above 1 flattens the distribution, below sharpens it."""
    top_k: int = 40
    """Keep the k most likely tokens; 0 keeps all."""
    top_p: float = 0.95
    """Keep the fewest most likely tokens that hold this much probability."""
    min_p: float = 0.05
    """Keep the tokens that are at least this fraction as likely as the most likely one."""
    seed: int | None = None
    """None draws a seed; the same seed and logits give the same tokens."""

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("temperature", self.temperature, 0.0, 1e6),
            ("top-k", self.top_k, 0, 1 << 31),
            ("top-p", self.top_p, 0.0, 1.0),
            ("min-p", self.min_p, 0.0, 1.0),
            ("seed", 0 if self.seed is None else self.seed, 0, (1 << 64) - 1),
        ):
            if not least <= value <= most:
                raise MinferError(f"{name} is {value}, expected {least:g} to {most:g}")


GREEDY = Sampling(temperature=0.0)


class Sampler:
    """Chooses one token after another. ``seed`` is the one in force, so that a run can be repeated."""

    def __init__(self, options: Sampling) -> None:
        self.options = options
        self.seed = secrets.randbits(32) if options.seed is None else options.seed
        self._random = np.random.default_rng(self.seed)

    def choose(self, logits: NDArray[np.float32]) -> int:
        """The next token from logits [vocabulary]. Raises MinferError where they hold no number to choose by."""
        best = int(np.argmax(logits))
        if not np.isfinite(logits[best]):
            raise MinferError(f"the logits hold {logits[best]} at token {best}, expected finite numbers; check the weights")
        if self.options.temperature == 0:
            return best
        tokens, probabilities = candidates(logits, self.options)
        cumulated = np.cumsum(probabilities)
        at = np.searchsorted(cumulated, self._random.random() * cumulated[-1], side="right")
        return int(tokens[min(int(at), len(tokens) - 1)])


def candidates(logits: NDArray[np.float32], options: Sampling) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The tokens that may be chosen, most likely first, and their probabilities, which sum to 1. Ties go to the lower id."""
    keep = options.top_k if 0 < options.top_k < len(logits) else len(logits)
    floor = np.partition(logits, -keep)[-keep]
    tokens = np.flatnonzero(logits >= floor)
    tokens = tokens[np.argsort(-logits[tokens], kind="stable")][:keep]
    scores = logits[tokens].astype(np.float64)
    likely = _softmax(scores)
    before = np.cumsum(likely) - likely
    wanted = (before < options.top_p) & (likely >= options.min_p * likely[0])
    wanted[0] = True
    return tokens[wanted], _softmax(scores[wanted] / options.temperature)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(scores - scores[0])
    result: NDArray[np.float64] = weights / weights.sum()
    return result
