"""Which kernel class a node of a ggml graph belongs to, and how much work it does.

The classes are the ones the engine uses for itself (docs/glossary.md): a matrix product by a weight is "<type> GEMM", by
the output head "logits"; a product of two activations is part of "attention".
"""

from __future__ import annotations

import re
from typing import Any

from ..attribution.events import OperationLabel
from .llama_library import Tensor

# Nodes that only change how memory is looked at: ggml runs nothing for them.
_FREE = frozenset({"NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"})
_CLASS_OF_OPERATION = {
    "FLASH_ATTN_EXT": "attention",
    "SOFT_MAX": "attention",
    "RMS_NORM": "norm",
    "NORM": "norm",
    "L2_NORM": "norm",
    "ROPE": "rope",
    "SET_ROWS": "kv write",
    "CPY": "kv write",
    "DUP": "copy",
    "CONT": "copy",
    "CONCAT": "copy",
    "GET_ROWS": "embedding",
    "ADD": "elementwise",
    "ADD1": "elementwise",
    "SUB": "elementwise",
    "DIV": "elementwise",
    "MUL": "elementwise",
    "SCALE": "elementwise",
    "CLAMP": "elementwise",
    "SQR": "elementwise",
    "SILU": "elementwise",
    "GELU": "elementwise",
    "SIGMOID": "elementwise",
    "SWIGLU": "elementwise",
    "GEGLU": "elementwise",
    "TANH": "elementwise",
    "ADD_ID": "elementwise",
    "SUM_ROWS": "router",
    "ARGSORT": "router",
    "TOP_K": "router",
}
_WEIGHT = re.compile(r"^(?:blk\.(\d+)\.)?(.+)\.(?:weight|bias)$")
_OUTPUT_HEADS = frozenset({"output", "token_embd"})


def label_node(lib: Any, node: Tensor, address: int) -> OperationLabel | None:
    """Describe one node, or None where ggml does no work for it. Unknown operations keep their own name, unclassified.

    ggml stores shapes innermost first: a weight is [k, n], activations [k, m], so m, n, k read off both inputs.
    """
    operation = lib.ggml_op_desc(address).decode()
    if operation in _FREE:
        return None
    sources = [Tensor.from_address(source) if source else None for source in node.src[:2]]
    names = [source.name.decode() if source is not None else "" for source in sources]
    weight = _WEIGHT.match(names[0])
    if operation in ("MUL_MAT", "MUL_MAT_ID") and sources[0] is not None and sources[1] is not None:
        return _matrix_product(lib, sources[0], node, weight)
    tensor = _WEIGHT.match(names[1]) or _WEIGHT.match(names[0])
    layer = int(tensor[1]) if tensor and tensor[1] else _layer_of(node.name.decode())
    kernel_class = _CLASS_OF_OPERATION.get(operation)
    name = operation.lower()
    if tensor and "norm" in tensor[2] and operation == "MUL":
        kernel_class, name = "norm", tensor[2]
    return OperationLabel(name, kernel_class, layer, m=_rows(node), n=int(node.ne[0]), k=0, bytes=_bytes(lib, node, address))


def _matrix_product(lib: Any, left: Tensor, node: Tensor, weight: re.Match[str] | None) -> OperationLabel:
    k, n, m = int(left.ne[0]), int(node.ne[0]), _rows(node)
    if weight is None:
        return OperationLabel("attention", "attention", _layer_of(node.name.decode()), m=m, n=n, k=k)
    quantisation = lib.ggml_type_name(left.type).decode()
    layer = int(weight[1]) if weight[1] else None
    head = layer is None and weight[2] in _OUTPUT_HEADS
    name = "output" if head else weight[2]
    kernel_class = "logits" if head else "router" if name == "ffn_gate_inp" else f"{quantisation} GEMM"
    return OperationLabel(name, kernel_class, layer, m, n, k, quantisation, macs=m * n * k)


def _rows(node: Tensor) -> int:
    return int(node.ne[1] * node.ne[2] * node.ne[3])


def _layer_of(name: str) -> int | None:
    """ggml names nodes "<what>-<layer>"."""
    found = re.search(r"-(\d+)(?: |$)", name)
    return int(found[1]) if found else None


def _bytes(lib: Any, node: Tensor, address: int) -> int:
    return int(lib.ggml_nbytes(address)) + sum(int(lib.ggml_nbytes(source)) for source in node.src[:2] if source)
