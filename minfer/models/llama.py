"""Llama (arXiv:2302.13971, arXiv:2407.21783), and what its file format also carries: Mistral, SmolLM, TinyLlama, Yi.

The q and k rows of these files are permuted so that rotary pairs are neighbours.
"""

from __future__ import annotations

from .prenorm import PreNormDecoder


class Model(PreNormDecoder):
    interleaved = True
