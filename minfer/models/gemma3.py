"""Gemma 3, text (arXiv:2503.19786): norms before and after each half-block, five local layers to each global one."""

from __future__ import annotations

from math import sqrt

from ..backends import Array
from ..config import ModelConfig
from ..forward import Attention, Forward
from ..rotary import rotary
from ..weights import Weights
from .decoder import Decoder, attention, feed_forward, read_attention, read_feed_forward

_LOCAL_BASE = 10000.0
_LAYERS_OF_27B = 62
"""The 27B model alone scales its scores by 1 / sqrt(embedding / heads); llama.cpp knows it by its layers too."""


class Model(Decoder):
    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        super().__init__(config, weights)
        self.embedding_scale = sqrt(config.embedding)
        layers, outer = range(config.layers), config.embedding
        self.attn_norm = [weights.vector(f"blk.{i}.attn_norm.weight", outer) for i in layers]
        self.attn = [read_attention(weights, config, i, normed=True) for i in layers]
        self.post_attention_norm = [weights.vector(f"blk.{i}.post_attention_norm.weight", outer) for i in layers]
        self.ffn_norm = [weights.vector(f"blk.{i}.ffn_norm.weight", outer) for i in layers]
        self.ffn = [read_feed_forward(weights, config, i) for i in layers]
        self.post_ffw_norm = [weights.vector(f"blk.{i}.post_ffw_norm.weight", outer) for i in layers]
        turning, scaling = config.rope_dimensions, config.rope_scaling
        local = rotary(turning, _LOCAL_BASE, interleaved=False)
        everywhere = rotary(turning, config.rope_base, interleaved=False, scaling=scaling, context=config.context)
        width = config.embedding / config.heads if config.layers == _LAYERS_OF_27B else config.key_length
        scale = 1.0 / sqrt(width)
        self.local = Attention(local, scale, config.sliding_window, config.attention_softcap)
        self.everywhere = Attention(everywhere, scale, None, config.attention_softcap)

    def how(self, layer: int) -> Attention:
        """The last layer of each period is global."""
        return self.everywhere if (layer + 1) % self.config.sliding_pattern == 0 else self.local

    def attend(self, run: Forward, layer: int, x: Array) -> Array:
        normed = run.norm("attn_norm", layer, self.attn_norm[layer], x, self.config.norm_epsilon)
        return attention(run, self.config, layer, self.attn[layer], normed, self.how(layer))

    def feed(self, run: Forward, layer: int, x: Array, attended: Array) -> Array:
        epsilon = self.config.norm_epsilon
        attended = run.norm("post_attention_norm", layer, self.post_attention_norm[layer], attended, epsilon)
        x = run.add("attn_residual", layer, x, attended)
        normed = run.norm("ffn_norm", layer, self.ffn_norm[layer], x, epsilon)
        mixed = feed_forward(run, layer, self.ffn[layer], normed, "gelu")
        mixed = run.norm("post_ffw_norm", layer, self.post_ffw_norm[layer], mixed, epsilon)
        return run.add("ffn_residual", layer, x, mixed)
