"""How close two engines' logits on the same tokens are: perplexity, Kullback-Leibler divergence, choice of the top token.

The definitions are those of llama.cpp's perplexity tool: KL(peer || ours), the peer being the base; perplexity is the
exponential of the mean negative log-likelihood of each token given those before it. Accumulated in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import UserFacingError

PERPLEXITY_BAR = 0.005
"""Largest relative difference of the perplexities that counts as agreement."""
MEAN_KL_BAR = 0.01
"""Mean divergence, in nats, that must stay below this."""


class AgreementError(UserFacingError):
    """The two sides cannot be compared."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two sets of logits on the same tokens."""

    tokens: int
    perplexity: float
    peer_perplexity: float
    perplexity_error: float
    """Standard error of their relative difference, from the differences of single tokens."""
    mean_kl: float
    """Over all positions, nats."""
    largest_kl: float
    same_top: float
    """Share of positions where both give the highest logit to the same token."""

    @property
    def perplexity_difference(self) -> float:
        """Ours over the peer's, minus 1."""
        return self.perplexity / self.peer_perplexity - 1

    @property
    def within_bars(self) -> bool:
        """False also where a number is no number."""
        return abs(self.perplexity_difference) <= PERPLEXITY_BAR and self.mean_kl < MEAN_KL_BAR

    @property
    def decided(self) -> bool:
        """Whether the tokens suffice to say on which side of its bar the perplexity's difference is: two standard errors."""
        return abs(abs(self.perplexity_difference) - PERPLEXITY_BAR) >= 2 * self.perplexity_error

    @property
    def tokens_to_decide(self) -> int:
        """Tokens at which the standard error is half the bar, from that of these: with as many, no difference at all is told
        from one of the bar."""
        return int(np.ceil(self.tokens * (2 * self.perplexity_error / PERPLEXITY_BAR) ** 2))


def compare_logits(tokens: Sequence[int], ours: NDArray[np.float32], peer: NDArray[np.float32]) -> Agreement:
    """Compare logits [tokens, vocabulary] of both sides. Raises AgreementError where the shapes differ or are too short."""
    if ours.shape != peer.shape or len(ours) != len(tokens):
        raise AgreementError(
            f"logits of {len(tokens)} tokens: ours {list(ours.shape)}, the peer's {list(peer.shape)}, expected the same; "
            f"give both sides the same weights"
        )
    if len(tokens) < 2:
        raise AgreementError(f"{len(tokens)} tokens give no prediction to judge; give at least 2")
    divergences, same = np.empty(len(tokens)), 0
    losses = np.empty((2, len(tokens) - 1))
    for at in range(len(tokens)):
        log_ours, log_peer = _log_softmax(ours[at]), _log_softmax(peer[at])
        divergences[at] = np.sum(np.exp(log_peer) * (log_peer - log_ours))
        same += int(np.argmax(log_ours) == np.argmax(log_peer))
        if at + 1 < len(tokens):
            losses[:, at] = -log_ours[tokens[at + 1]], -log_peer[tokens[at + 1]]
    perplexity, peer_perplexity = np.exp(losses.mean(axis=1))
    apart = losses[0] - losses[1]
    return Agreement(
        tokens=len(tokens),
        perplexity=float(perplexity),
        peer_perplexity=float(peer_perplexity),
        perplexity_error=float(apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else float("nan"),
        mean_kl=float(divergences.mean()),
        largest_kl=float(divergences.max()),
        same_top=same / len(tokens),
    )


def combined(parts: Sequence[Agreement]) -> Agreement:
    """Several stretches of text, each judged from an empty context, as one. Raises AgreementError for none."""
    if not parts:
        raise AgreementError("no stretch of text was compared; expected at least one")
    tokens = np.array([part.tokens for part in parts])
    predicted = tokens - 1
    losses = np.log([[part.perplexity, part.peer_perplexity] for part in parts])
    loss, peer_loss = predicted @ losses / predicted.sum()
    apart = losses[:, 0] - losses[:, 1]
    # Variance of single tokens' differences: within each stretch, from its standard error, and between stretches.
    within = np.array([part.perplexity_error for part in parts]) ** 2 * predicted * (predicted - 1)
    squares = np.sum(within + predicted * (apart - (loss - peer_loss)) ** 2)
    return Agreement(
        tokens=int(tokens.sum()),
        perplexity=float(np.exp(loss)),
        peer_perplexity=float(np.exp(peer_loss)),
        perplexity_error=float(np.sqrt(squares / (predicted.sum() - 1) / predicted.sum())),
        mean_kl=float(tokens @ [part.mean_kl for part in parts] / tokens.sum()),
        largest_kl=max(part.largest_kl for part in parts),
        same_top=float(tokens @ [part.same_top for part in parts] / tokens.sum()),
    )


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences have in common from their start."""
    pairs = zip(first, second, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - float(logits.max())
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return result
