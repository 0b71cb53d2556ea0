"""Which tensor gets which quantisation: llama.cpp's own rules (src/llama-quant.cpp) for its named mixes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType

from ..errors import MinferError
from .shapes import Plan, Shape

Type = GGMLQuantizationType


@dataclass(frozen=True, slots=True)
class Mix:
    """A named mix: the type of most weights, that of those it spares, and the rule that picks them."""

    file_type: int
    most: GGMLQuantizationType
    spared: GGMLQuantizationType
    rule: str = "none"
    """"medium": attention values and down projections of about half the layers; "small": those of the first layers."""
    output: GGMLQuantizationType = Type.Q6_K


MIXES: dict[str, Mix] = {
    "q4_k_m": Mix(LlamaFileType.MOSTLY_Q4_K_M, Type.Q4_K, Type.Q6_K, "medium"),
    "q4_k_s": Mix(LlamaFileType.MOSTLY_Q4_K_S, Type.Q4_K, Type.Q5_K, "small"),
    "q5_k_m": Mix(LlamaFileType.MOSTLY_Q5_K_M, Type.Q5_K, Type.Q6_K, "medium"),
    "q6_k": Mix(LlamaFileType.MOSTLY_Q6_K, Type.Q6_K, Type.Q6_K),
    "q8_0": Mix(LlamaFileType.MOSTLY_Q8_0, Type.Q8_0, Type.Q8_0, output=Type.Q8_0),
    "q4_0": Mix(LlamaFileType.MOSTLY_Q4_0, Type.Q4_0, Type.Q4_0),
    "f16": Mix(LlamaFileType.MOSTLY_F16, Type.F16, Type.F16, output=Type.F16),
}

# Where a row is no whole number of blocks of 256, llama.cpp takes a type with blocks of 32 instead.
_FALLBACK = {Type.Q4_K: Type.Q5_0, Type.Q5_K: Type.Q5_1, Type.Q6_K: Type.Q8_0}


def named_mix(name: str) -> Mix:
    """A mix by its name. Raises MinferError."""
    if name not in MIXES:
        raise MinferError(f"no mix {name!r}; there are: {', '.join(MIXES)}")
    return MIXES[name]


def use_more_bits(layer: int, layers: int) -> bool:
    """The first and last eighth of the layers, and every third between."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def type_of(plan: Plan, shape: Shape, mix: Mix) -> GGMLQuantizationType:
    """The quantisation of one tensor."""
    if len(plan.shape) == 1 or plan.role == "ffn_gate_inp":
        return Type.F32
    chosen = mix.most
    if plan.role == "output" or (plan.role == "token_embd" and shape.tied):
        chosen = mix.output
    elif plan.layer is not None and plan.role in ("attn_v", "ffn_down", "ffn_down_exps"):
        few = 4 if plan.role == "attn_v" else shape.layers // 8
        picked = {"medium": use_more_bits(plan.layer, shape.layers), "small": plan.layer < few, "none": False}[mix.rule]
        chosen = mix.spared if picked else mix.most
    if plan.shape[-1] % GGML_QUANT_SIZES[chosen][0]:
        chosen = _FALLBACK.get(chosen, Type.F16)
    return chosen


def bytes_of(shape: tuple[int, ...], kind: GGMLQuantizationType) -> int:
    """Stored size of a tensor."""
    block, block_bytes = GGML_QUANT_SIZES[kind]
    return prod(shape) // block * block_bytes
