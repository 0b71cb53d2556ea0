"""Tiny random models of every architecture, written with ggml's own writer and read back by nothing but the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np


@dataclass(frozen=True)
class Tiny:
    """Shape of a tiny model. The defaults suit every architecture; quantised types need rows of 32 or 256."""

    architecture: str = "llama"
    layers: int = 3
    embedding: int = 64
    heads: int = 4
    kv_heads: int = 2
    key_length: int = 16
    value_length: int = 16
    feed_forward: int = 96
    vocabulary: int = 50
    context: int = 128
    tied: bool = False
    biased: bool = False
    type: str = "F32"
    experts: int = 0
    experts_used: int = 0
    rope_factors: bool = False
    """Whether the file has Llama 3's factor per rotary frequency."""
    seed: int = 0
    extra: dict[str, object] = field(default_factory=dict)
    """Further metadata, keys without the architecture's prefix."""

    @property
    def normed(self) -> bool:
        return self.architecture in ("qwen3", "qwen3moe", "gemma3")


def weights_of(tiny: Tiny) -> dict[str, np.ndarray]:
    """Tensors by name, float32, row-major."""
    random = np.random.default_rng(tiny.seed)

    def matrix(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    def vector(n: int, centre: float) -> np.ndarray:
        return (centre + 0.1 * random.standard_normal(n)).astype(np.float32)

    e, f = tiny.embedding, tiny.feed_forward
    keys, values = tiny.key_length, tiny.value_length
    widths = {"q": tiny.heads * keys, "k": tiny.kv_heads * keys, "v": tiny.kv_heads * values}
    out = {"token_embd.weight": matrix(tiny.vocabulary, e) * 4, "output_norm.weight": vector(e, 1)}
    if not tiny.tied:
        out["output.weight"] = matrix(tiny.vocabulary, e)
    if tiny.rope_factors:
        out["rope_freqs.weight"] = np.linspace(1, 8, tiny.key_length // 2, dtype=np.float32)
    for layer in range(tiny.layers):
        blk = f"blk.{layer}."
        out[blk + "attn_norm.weight"] = vector(e, 1)
        for name, n in widths.items():
            out[f"{blk}attn_{name}.weight"] = matrix(n, e)
            if tiny.biased:
                out[f"{blk}attn_{name}.bias"] = vector(n, 0)
        out[blk + "attn_output.weight"] = matrix(e, tiny.heads * tiny.value_length)
        if tiny.normed:
            out[blk + "attn_q_norm.weight"] = vector(tiny.key_length, 1)
            out[blk + "attn_k_norm.weight"] = vector(tiny.key_length, 1)
        out[blk + "ffn_norm.weight"] = vector(e, 1)
        if tiny.experts:
            out[blk + "ffn_gate_inp.weight"] = matrix(tiny.experts, e)
            out[blk + "ffn_gate_exps.weight"] = matrix(tiny.experts, f, e)
            out[blk + "ffn_up_exps.weight"] = matrix(tiny.experts, f, e)
            out[blk + "ffn_down_exps.weight"] = matrix(tiny.experts, e, f)
        else:
            out[blk + "ffn_gate.weight"] = matrix(f, e)
            out[blk + "ffn_up.weight"] = matrix(f, e)
            out[blk + "ffn_down.weight"] = matrix(e, f)
        if tiny.architecture == "gemma3":
            out[blk + "post_attention_norm.weight"] = vector(e, 1)
            out[blk + "post_ffw_norm.weight"] = vector(e, 1)
    return out


def write_tiny(path: Path, tiny: Tiny, weights: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """Write the model; returns the weights as stored, dequantised to float32. Norms and biases are always F32."""
    prefix = tiny.architecture
    metadata: dict[str, object] = {
        "block_count": tiny.layers,
        "context_length": tiny.context,
        "embedding_length": tiny.embedding,
        "feed_forward_length": tiny.feed_forward,
        "attention.head_count": tiny.heads,
        "attention.head_count_kv": tiny.kv_heads,
        "attention.key_length": tiny.key_length,
        "attention.value_length": tiny.value_length,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
    }
    if tiny.experts:
        metadata |= {
            "expert_count": tiny.experts,
            "expert_used_count": tiny.experts_used,
            "expert_feed_forward_length": tiny.feed_forward,
        }
    metadata |= tiny.extra
    writer = gguf.GGUFWriter(path, prefix)
    for key, value in metadata.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, bool: writer.add_bool}
        add.get(type(value), writer.add_array)(f"{prefix}.{key}", value)
    kind = gguf.GGMLQuantizationType[tiny.type]
    stored = {}
    for name, weight in (weights or weights_of(tiny)).items():
        this = gguf.GGMLQuantizationType.F32 if weight.ndim == 1 else kind
        data = gguf.quantize(weight, this)
        stored[name] = np.asarray(gguf.dequantize(data, this), np.float32).reshape(weight.shape)
        writer.add_tensor(name, data, raw_dtype=this)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return stored
