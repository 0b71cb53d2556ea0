"""Rotary position embedding: the angle by which each pair of a head's dimensions turns per token.

RoPE: arXiv:2104.09864. Linear scaling: arXiv:2306.15595. YaRN: arXiv:2309.00071. Llama 3's scaling comes ready-made in the
file, as one factor per frequency (tensor ``rope_freqs.weight``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log, pi

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How a file stretches its context: positions divided ("linear"), or only in the slow frequencies ("yarn")."""

    kind: str
    factor: float
    original_context: int | None
    attention_factor: float
    beta_fast: float
    beta_slow: float


@dataclass(frozen=True, slots=True, eq=False)
class Rotary:
    """One layer kind's rotation: pair i of a head turns by ``frequencies[i]`` radians a token, scaled by ``magnitude``."""

    frequencies: Float64
    """[dimensions / 2]."""
    magnitude: float
    interleaved: bool
    """Pairs are (0, 1), (2, 3), ... as in Llama's files; otherwise (0, d/2), (1, d/2 + 1), ... as in GPT-NeoX's."""

    @property
    def dimensions(self) -> int:
        """Leading dimensions of a head that turn; the others pass."""
        return 2 * len(self.frequencies)


def rotary(
    dimensions: int,
    base: float,
    *,
    interleaved: bool,
    scaling: RopeScaling | None = None,
    context: int = 0,
    factors: NDArray[np.float32] | None = None,
) -> Rotary:
    """The rotation of ``dimensions`` dimensions.

    ``context`` is the length that the model was trained for, used by YaRN where the file states no other;
    ``factors`` [dimensions / 2] divide the frequencies (Llama 3).
    """
    pairs = np.arange(dimensions // 2, dtype=np.float64)
    frequencies = base ** (-2.0 * pairs / dimensions)
    if factors is not None:
        frequencies = frequencies / factors.astype(np.float64)
    if scaling is None:
        return Rotary(frequencies, 1.0, interleaved)
    if scaling.kind == "linear":
        return Rotary(frequencies / scaling.factor, scaling.attention_factor, interleaved)
    trained = scaling.original_context or context
    low = max(0.0, floor(_turning_pair(dimensions, trained, scaling.beta_fast, base)))
    high = min(dimensions - 1.0, ceil(_turning_pair(dimensions, trained, scaling.beta_slow, base)))
    keep = 1.0 - np.clip((pairs - low) / max(0.001, high - low), 0.0, 1.0)
    frequencies = frequencies * (keep + (1.0 - keep) / scaling.factor)
    return Rotary(frequencies, scaling.attention_factor * (1.0 + 0.1 * log(max(1.0, scaling.factor))), interleaved)


def _turning_pair(dimensions: int, context: int, turns: float, base: float) -> float:
    """The (fractional) pair that makes ``turns`` full turns over ``context`` tokens; YaRN's equation for the ramp."""
    return dimensions * log(context / (turns * 2.0 * pi)) / (2.0 * log(base))
