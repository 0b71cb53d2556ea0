"""What all decoder-only transformers here share: embedding, blocks of attention and feed-forward, final norm, logits.

A model file reads its own weights and says what its blocks do with these parts; the order of operations is that of
llama.cpp, so that both sides do the same MACs: in the last block everything after attention runs only on the rows whose
logits are wanted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..backends import Array, Matrix
from ..config import ModelConfig
from ..forward import Attention, Forward
from ..weights import Weights


class Decoder(ABC):
    """Built once from a file's config and weights; ``forward`` may run on any number of tokens at any position."""

    embedding_scale = 1.0

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self.config = config
        self.table = weights.matrix("token_embd.weight", config.vocabulary, config.embedding)
        self.output_norm = weights.vector("output_norm.weight", config.embedding)
        tied = not weights.has("output.weight")
        self.output = self.table if tied else weights.matrix("output.weight", config.vocabulary, config.embedding)

    @abstractmethod
    def attend(self, run: Forward, layer: int, x: Array) -> Array:
        """The attention half of a block on x [m, embedding], up to its output projection: [m, embedding]."""

    @abstractmethod
    def feed(self, run: Forward, layer: int, x: Array, attended: Array) -> Array:
        """The rest of a block: residual sum, feed-forward, residual sum."""

    def forward(self, run: Forward, tokens: Array) -> Array | None:
        """Logits [run.rows, vocabulary] of the last rows; None where none are wanted."""
        x = run.embedding(self.table, tokens, self.embedding_scale)
        for layer in range(self.config.layers):
            attended = self.attend(run, layer, x)
            if layer == self.config.layers - 1:
                if run.rows == 0:
                    return None
                x, attended = run.wanted_rows(x), run.wanted_rows(attended)
            x = self.feed(run, layer, x, attended)
        x = run.norm("output_norm", None, self.output_norm, x, self.config.norm_epsilon)
        return run.logits(self.output, x, self.config.logit_softcap)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionWeights:
    """Projections [n, k]; biases and per-head norms where the architecture has them."""

    q: Matrix
    k: Matrix
    v: Matrix
    output: Matrix
    q_bias: Array | None
    k_bias: Array | None
    v_bias: Array | None
    output_bias: Array | None
    q_norm: Array | None
    k_norm: Array | None


def read_attention(
    weights: Weights, config: ModelConfig, layer: int, *, biased: bool = False, normed: bool = False
) -> AttentionWeights:
    """One layer's attention. ``biased``: q, k and v must have biases (they may anyway); ``normed``: q and k have norms."""
    heads, kv_heads, blk = config.heads, config.kv_heads, f"blk.{layer}"
    widths = {"q": heads * config.key_length, "k": kv_heads * config.key_length, "v": kv_heads * config.value_length}
    q, k, v = (weights.matrix(f"{blk}.attn_{name}.weight", n, config.embedding) for name, n in widths.items())
    bias = weights.vector if biased else weights.optional_vector
    q_bias, k_bias, v_bias = (bias(f"{blk}.attn_{name}.bias", n) for name, n in widths.items())
    return AttentionWeights(
        q, k, v, weights.matrix(f"{blk}.attn_output.weight", config.embedding, heads * config.value_length),
        q_bias, k_bias, v_bias, weights.optional_vector(f"{blk}.attn_output.bias", config.embedding),
        weights.vector(f"{blk}.attn_q_norm.weight", config.key_length) if normed else None,
        weights.vector(f"{blk}.attn_k_norm.weight", config.key_length) if normed else None,
    )  # fmt: skip


def attention(run: Forward, config: ModelConfig, layer: int, w: AttentionWeights, x: Array, how: Attention) -> Array:
    """Grouped-query attention on normed x [m, embedding]: [m, embedding]."""
    m = x.shape[0]
    q = run.linear("attn_q", layer, w.q, x, w.q_bias).reshape(m, config.heads, config.key_length)
    k = run.linear("attn_k", layer, w.k, x, w.k_bias).reshape(m, config.kv_heads, config.key_length)
    v = run.linear("attn_v", layer, w.v, x, w.v_bias).reshape(m, config.kv_heads, config.value_length)
    if w.q_norm is not None and w.k_norm is not None:
        q = run.norm("attn_q_norm", layer, w.q_norm, q, config.norm_epsilon)
        k = run.norm("attn_k_norm", layer, w.k_norm, k, config.norm_epsilon)
    q = run.rope("rope", layer, q, how.rotary)
    k = run.rope("rope", layer, k, how.rotary)
    mixed = run.attention(layer, q, k, v, how)
    return run.linear("attn_output", layer, w.output, mixed, w.output_bias)


@dataclass(frozen=True, slots=True, eq=False)
class FeedForwardWeights:
    gate: Matrix
    up: Matrix
    down: Matrix
    gate_bias: Array | None
    up_bias: Array | None
    down_bias: Array | None


def read_feed_forward(weights: Weights, config: ModelConfig, layer: int) -> FeedForwardWeights:
    """One layer's gated feed-forward."""
    blk, inner, outer = f"blk.{layer}", config.feed_forward, config.embedding
    return FeedForwardWeights(
        weights.matrix(f"{blk}.ffn_gate.weight", inner, outer),
        weights.matrix(f"{blk}.ffn_up.weight", inner, outer),
        weights.matrix(f"{blk}.ffn_down.weight", outer, inner),
        weights.optional_vector(f"{blk}.ffn_gate.bias", inner),
        weights.optional_vector(f"{blk}.ffn_up.bias", inner),
        weights.optional_vector(f"{blk}.ffn_down.bias", outer),
    )


def feed_forward(run: Forward, layer: int, w: FeedForwardWeights, x: Array, activation: str) -> Array:
    """down(activation(gate(x)) * up(x)) on normed x [m, embedding]."""
    gate = run.linear("ffn_gate", layer, w.gate, x, w.gate_bias)
    up = run.linear("ffn_up", layer, w.up, x, w.up_bias)
    return run.linear("ffn_down", layer, w.down, run.gated(layer, gate, up, activation), w.down_bias)
