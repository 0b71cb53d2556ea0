"""The named shapes, the metadata that says them, and the tensors that they consist of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..errors import MinferError

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3", "qwen3moe")


@dataclass(frozen=True, slots=True)
class Shape:
    """Lengths in elements, as in a model's own configuration file."""

    architecture: str
    layers: int
    embedding: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_dimension: int
    vocabulary: int
    context: int
    rope_base: float
    tied: bool
    """The output head is the token embedding."""
    norm_epsilon: float = 1e-6
    sliding_window: int = 0
    experts: int = 0
    experts_used: int = 0
    expert_feed_forward: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """One tensor to be written. ``shape`` is row-major, as [n, k]."""

    name: str
    shape: tuple[int, ...]
    layer: int | None = None

    @property
    def role(self) -> str:
        """The name without block and suffix: "attn_v", "token_embd"."""
        return self.name.removeprefix(f"blk.{self.layer}.").removesuffix(".weight")


# Qwen's own numbers: config.json of Qwen/Qwen2.5-0.5B, -1.5B, -3B, -7B and Qwen/Qwen3-30B-A3B.
# Eight layers let tiny hold every branch of a mix.
_TINY = Shape("qwen2", 8, 256, 512, 4, 2, 64, 1024, 4096, 1e6, tied=False)
SHAPES: dict[str, Shape] = {
    "tiny": _TINY,
    "qwen2.5-0.5b": Shape("qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, 1e6, tied=True),
    "qwen2.5-1.5b": Shape("qwen2", 28, 1536, 8960, 12, 2, 128, 151936, 32768, 1e6, tied=True),
    "qwen2.5-3b": Shape("qwen2", 36, 2048, 11008, 16, 2, 128, 151936, 32768, 1e6, tied=True),
    "qwen2.5-7b": Shape("qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768, 1e6, tied=False),
    "qwen3-30b-a3b": Shape(
        "qwen3moe", 48, 2048, 6144, 32, 4, 128, 151936, 40960, 1e6, tied=False, experts=128, experts_used=8,
        expert_feed_forward=768,
    ),
}


def named_shape(name: str, architecture: str | None = None) -> Shape:
    """A shape by its name; ``architecture`` makes the tiny one of another family. Raises MinferError."""
    if name not in SHAPES:
        raise MinferError(f"no shape {name!r}; there are: {', '.join(SHAPES)}")
    shape = SHAPES[name]
    if architecture in (None, shape.architecture):
        return shape
    if architecture not in ARCHITECTURES:
        raise MinferError(f"no architecture {architecture!r}; there are: {', '.join(ARCHITECTURES)}")
    if name != "tiny":
        raise MinferError(f"shape {name} is {shape.architecture}, seen --arch {architecture}; only tiny comes in others")
    if architecture == "gemma3":
        return replace(shape, architecture=architecture, layers=7, tied=True, sliding_window=128)
    if architecture == "qwen3moe":
        return replace(shape, architecture=architecture, experts=16, experts_used=4, expert_feed_forward=256)
    return replace(shape, architecture=architecture)


def tensors(shape: Shape) -> Iterator[Plan]:
    """Every tensor, in the order of the file."""
    heads, kv = shape.heads * shape.head_dimension, shape.kv_heads * shape.head_dimension
    yield Plan("token_embd.weight", (shape.vocabulary, shape.embedding))
    for layer in range(shape.layers):
        for name, extent in _block(shape, heads, kv):
            yield Plan(f"blk.{layer}.{name}", extent, layer)
    yield Plan("output_norm.weight", (shape.embedding,))
    if not shape.tied:
        yield Plan("output.weight", (shape.vocabulary, shape.embedding))


def _block(shape: Shape, heads: int, kv: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, inner = shape.embedding, shape.feed_forward
    yield "attn_norm.weight", (width,)
    for name, extent in (("q", heads), ("k", kv), ("v", kv)):
        yield f"attn_{name}.weight", (extent, width)
        if shape.architecture == "qwen2":
            yield f"attn_{name}.bias", (extent,)
    if shape.architecture in ("qwen3", "qwen3moe", "gemma3"):
        yield "attn_q_norm.weight", (shape.head_dimension,)
        yield "attn_k_norm.weight", (shape.head_dimension,)
    yield "attn_output.weight", (width, heads)
    if shape.architecture == "gemma3":
        yield "post_attention_norm.weight", (width,)
        yield "post_ffw_norm.weight", (width,)
    yield "ffn_norm.weight", (width,)
    if shape.experts:
        yield "ffn_gate_inp.weight", (shape.experts, width)
        yield "ffn_gate_exps.weight", (shape.experts, shape.expert_feed_forward, width)
        yield "ffn_up_exps.weight", (shape.experts, shape.expert_feed_forward, width)
        yield "ffn_down_exps.weight", (shape.experts, width, shape.expert_feed_forward)
    else:
        yield "ffn_gate.weight", (inner, width)
        yield "ffn_up.weight", (inner, width)
        yield "ffn_down.weight", (width, inner)


def metadata(shape: Shape, name: str) -> dict[str, str | int | float]:
    """The keys that llama.cpp and this engine read. There is no vocabulary, only its size."""
    own: dict[str, str | int | float] = {
        "context_length": shape.context,
        "embedding_length": shape.embedding,
        "block_count": shape.layers,
        "feed_forward_length": shape.feed_forward,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.key_length": shape.head_dimension,
        "attention.value_length": shape.head_dimension,
        "attention.layer_norm_rms_epsilon": shape.norm_epsilon,
        "rope.freq_base": shape.rope_base,
        "rope.dimension_count": shape.head_dimension,
        "vocab_size": shape.vocabulary,
    }
    if shape.sliding_window:
        own["attention.sliding_window"] = shape.sliding_window
    if shape.experts:
        own |= {
            "expert_count": shape.experts,
            "expert_used_count": shape.experts_used,
            "expert_feed_forward_length": shape.expert_feed_forward,
        }
    return {
        "general.architecture": shape.architecture,
        "general.name": f"{name} (random weights)",
        "general.quantization_version": 2,
        **{f"{shape.architecture}.{key}": value for key, value in own.items()},
        "tokenizer.ggml.model": "none",
    }
