"""The Llama-shaped block: norm, attention, residual sum; norm, gated feed-forward, residual sum."""

from __future__ import annotations

from math import sqrt

from ..backends import Array
from ..config import ModelConfig
from ..errors import MinferError
from ..forward import Attention, Forward
from ..rotary import rotary
from ..weights import Weights
from .decoder import Decoder, attention, feed_forward, read_attention, read_feed_forward


class PreNormDecoder(Decoder):
    """A family sets these, and no more."""

    interleaved = False
    """Rotary layout of its files."""
    biased = False
    """q, k and v have biases."""
    normed = False
    """q and k have per-head norms."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        super().__init__(config, weights)
        layers = range(config.layers)
        self.attn_norm = [weights.vector(f"blk.{i}.attn_norm.weight", config.embedding) for i in layers]
        self.attn = [read_attention(weights, config, i, biased=self.biased, normed=self.normed) for i in layers]
        self.ffn_norm = [weights.vector(f"blk.{i}.ffn_norm.weight", config.embedding) for i in layers]
        self.read_feed_forward(weights)
        turns = rotary(
            config.rope_dimensions,
            config.rope_base,
            interleaved=self.interleaved,
            scaling=config.rope_scaling,
            context=config.context,
            factors=weights.optional_floats("rope_freqs.weight", config.rope_dimensions // 2),
        )
        self.how = Attention(turns, 1.0 / sqrt(config.key_length), None, config.attention_softcap)

    def read_feed_forward(self, weights: Weights) -> None:
        if self.config.experts:
            raise MinferError(
                f"{weights.path}: architecture {self.config.architecture!r} with {self.config.experts} experts is not "
                f"supported, expected a dense model; of the mixtures of experts qwen3moe is supported"
            )
        self.ffn = [read_feed_forward(weights, self.config, i) for i in range(self.config.layers)]

    def attend(self, run: Forward, layer: int, x: Array) -> Array:
        normed = run.norm("attn_norm", layer, self.attn_norm[layer], x, self.config.norm_epsilon)
        return attention(run, self.config, layer, self.attn[layer], normed, self.how)

    def feed(self, run: Forward, layer: int, x: Array, attended: Array) -> Array:
        x = run.add("attn_residual", layer, x, attended)
        normed = run.norm("ffn_norm", layer, self.ffn_norm[layer], x, self.config.norm_epsilon)
        return run.add("ffn_residual", layer, x, self.feed_forward(run, layer, normed))

    def feed_forward(self, run: Forward, layer: int, x: Array) -> Array:
        return feed_forward(run, layer, self.ffn[layer], x, "silu")
