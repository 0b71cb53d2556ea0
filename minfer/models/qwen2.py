"""Qwen2 and Qwen2.5 (arXiv:2407.10671): biases on q, k and v."""

from __future__ import annotations

from .prenorm import PreNormDecoder


class Model(PreNormDecoder):
    biased = True
