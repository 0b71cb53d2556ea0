"""One typed launcher for each operation in ``kernels/``: checks what it is given, then launches. A file for each family."""

from __future__ import annotations

from .attention import attention, attention_few, attention_shapes, splits_for
from .between import add_bias, add_residual, gated, rms_norm, rms_norm_residual, rope, soft_cap
from .checks import expect
from .experts import EXPERT_TILES, combine, expert_gemm, expert_mmv, expert_tiles, router_group, router_rows, router_top
from .integers import bt, mmq, quantise, quantise_bt
from .rows import kv_write, set_position
from .weights import DECODED, FEW_ROWS, GROUPED, Product, dequantise, embedding, mmv, mmv_group

__all__ = [
    "DECODED",
    "EXPERT_TILES",
    "FEW_ROWS",
    "GROUPED",
    "Product",
    "add_bias",
    "add_residual",
    "attention",
    "attention_few",
    "attention_shapes",
    "bt",
    "combine",
    "dequantise",
    "embedding",
    "expect",
    "expert_gemm",
    "expert_mmv",
    "expert_tiles",
    "gated",
    "kv_write",
    "mmq",
    "mmv",
    "mmv_group",
    "quantise",
    "quantise_bt",
    "rms_norm",
    "rms_norm_residual",
    "rope",
    "router_group",
    "router_rows",
    "router_top",
    "set_position",
    "soft_cap",
    "splits_for",
]
