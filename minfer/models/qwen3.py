"""Qwen3 (arXiv:2505.09388): a norm on each head of q and k, no biases."""

from __future__ import annotations

from .prenorm import PreNormDecoder


class Model(PreNormDecoder):
    normed = True
