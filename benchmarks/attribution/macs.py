"""Multiply-accumulates from tensor shapes and token counts, never from time; and what a class costs per GMAC.

A GGUF's shapes come in as a plain table, so nothing here needs the engine or the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .errors import UserFacingError
from .events import OperationLabel
from .record import Check, ClassTime

GMAC = 10**9
_BLOCK_TENSOR = re.compile(r"^blk\.(\d+)\.([a-z0-9_]+)\.weight$")
_LINEAR = re.compile(r"^(attn_(q|k|v|qkv|output|gate)|ffn_(gate|up|down)(_exps|_shexp)?|ffn_gate_inp|ssm_(in|out))$")
_PRODUCT_CLASS = re.compile(r"^(?P<type>\S+) (?:GEMM|GEMV)$")


class ShapeError(UserFacingError):
    """A table of tensors from which the work cannot be counted."""


@dataclass(frozen=True, slots=True)
class TensorShape:
    """One weight: ``n`` output columns, ``k`` the reduction (GGUF's ne[1] and ne[0]); ``experts`` its ne[2]."""

    name: str
    n: int
    k: int
    quantisation: str
    """ggml's name of the type: "q4_K"."""
    experts: int = 1


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """What attention's work depends on, beside the tokens."""

    heads: int
    head_dim: int
    window: int | None = None
    """Sliding window in tokens; None: every earlier token is seen."""


def causal_attention_macs(shape: AttentionShape, tokens: int, past: int = 0) -> int:
    """Scores and weighted sum of values, for the query-key pairs that the causal mask keeps: 2 x heads x head_dim a pair.

    ``past`` tokens are in the cache already. A query at position p sees p + 1 keys, at most ``window``.
    """
    first, last = past + 1, past + tokens
    if shape.window is None or last <= shape.window:
        pairs = (first + last) * tokens // 2
    else:
        growing = max(min(last, shape.window) - first + 1, 0)
        pairs = (first + first + growing - 1) * growing // 2 + (tokens - growing) * shape.window
    return 2 * shape.heads * shape.head_dim * pairs


def block_and_role(tensor: str) -> tuple[int | None, str]:
    """``blk.3.ffn_down.weight`` is (3, "ffn_down"); a tensor outside the blocks is (None, its name without ".weight")."""
    match = _BLOCK_TENSOR.match(tensor)
    return (int(match.group(1)), match.group(2)) if match else (None, tensor.removesuffix(".weight"))


def linear_work(
    tensors: Iterable[TensorShape],
    tokens: int,
    *,
    last_block_ffn_tokens: int | None = None,
    logits_tokens: int = 1,
    experts_used: int | None = None,
) -> tuple[OperationLabel, ...]:
    """The linear layers of one pass over ``tokens``, one label a weight, in the order of the table.

    An engine may run the last block's feed-forward only for the tokens whose logits are wanted (llama.cpp does: 1):
    ``last_block_ffn_tokens``; None means all. The head ("output", or the token embedding where the two are tied) runs for
    ``logits_tokens``. Raises ShapeError for a mixture of experts without ``experts_used``.
    """
    table = list(tensors)
    roles = [block_and_role(tensor.name) for tensor in table]
    last = max((block for block, role in roles if block is not None and _LINEAR.match(role)), default=None)
    if last is None:
        raise ShapeError(
            f"none of {len(table)} tensors is a linear layer of a block; expected names like blk.0.attn_q.weight"
        )
    has_head = any(role == "output" and block is None for block, role in roles)
    labels = []
    for tensor, (block, role) in zip(table, roles, strict=True):
        if block is None:
            if role == "output" or (role == "token_embd" and not has_head):
                labels.append(label_of(tensor, "output", None, logits_tokens, "logits"))
        elif _LINEAR.match(role):
            rows = tokens
            if block == last and role.startswith("ffn_") and last_block_ffn_tokens is not None:
                rows = last_block_ffn_tokens
            if tensor.experts > 1:
                if experts_used is None:
                    raise ShapeError(f"{tensor.name}: {tensor.experts} experts; say how many of them a token uses")
                rows *= experts_used
            labels.append(label_of(tensor, role, block, rows, product_class(tensor.quantisation, rows)))
    return tuple(labels)


def product_class(quantisation: str, rows: int) -> str:
    """The class of a product with a weight: few rows are a matrix-vector product, bound by memory and not by arithmetic."""
    return f"{quantisation} {'GEMV' if rows <= GEMV_MAX_ROWS else 'GEMM'}"


GEMV_MAX_ROWS = 8
"""Rows up to which llama.cpp takes its vector kernels. Source: MMVQ_MAX_BATCH_SIZE in ggml-cuda/mmvq.cuh."""


def label_of(tensor: TensorShape, name: str, layer: int | None, rows: int, kernel_class: str) -> OperationLabel:
    """The label of one product of ``rows`` activations with a weight."""
    return OperationLabel(
        name=name,
        kernel_class=kernel_class,
        layer=layer,
        m=rows,
        n=tensor.n,
        k=tensor.k,
        quantisation=tensor.quantisation,
        macs=rows * tensor.n * tensor.k,
    )


def mma_count(m: int, n: int, k: int, tile: tuple[int, int, int] = (16, 8, 32)) -> int:
    """Tensor-core instructions of a product, ragged edges rounded up. The default tile is the int8 mma's m16n8k32."""
    return math.prod(-(-size // step) for size, step in zip((m, n, k), tile, strict=True))


def macs_by_class(labels: Iterable[OperationLabel]) -> dict[str, int]:
    """Multiply-accumulates of each class; labels without a class or a count are left out."""
    found: dict[str, int] = {}
    for label in labels:
        if label.kernel_class is not None and label.macs is not None:
            found[label.kernel_class] = found.get(label.kernel_class, 0) + label.macs
    return found


def us_per_gmac(ns: float, macs: int | None) -> float | None:
    """The cost of a class; None where its work is not known or it has none."""
    return ns * 1e-3 / (macs / GMAC) if macs else None


def macs_by_weight_type(classes: Iterable[ClassTime]) -> dict[str, int | None]:
    """Work on each type of weight, GEMM and GEMV together: engines draw the line between the two differently."""
    found: dict[str, int | None] = {}
    for item in classes:
        match = _PRODUCT_CLASS.match(item.name)
        if match is None and item.name != "logits":
            continue
        key = match.group("type") if match else item.name
        before = found.get(key, 0)
        found[key] = None if before is None or item.macs is None else before + item.macs
    return found


def same_gmac(a: Iterable[ClassTime], b: Iterable[ClassTime], names: tuple[str, str] = ("a", "b")) -> Check:
    """The two-sided check: the same weights and tokens are the same work on both sides, type by type, exactly.

    Types that only one side ran, or whose work one side does not know, are named and leave the check open (None).
    """
    left, right = macs_by_weight_type(a), macs_by_weight_type(b)
    different, unknown, largest = [], [], 0.0
    for key in sorted(left.keys() | right.keys()):
        mine, theirs = left.get(key), right.get(key)
        if mine is None or theirs is None:
            unknown.append(key)
        elif mine != theirs:
            largest = max(largest, abs(mine - theirs) / max(mine, theirs))
            different.append(f"{key}: {names[0]} {mine / GMAC:.3f}, {names[1]} {theirs / GMAC:.3f} GMAC")
    detail = "; ".join(different + ([f"not known on both sides: {', '.join(unknown)}"] if unknown else []))
    compared = len(left.keys() | right.keys()) - len(unknown)
    passed = False if different else (None if unknown or not compared else True)
    return Check(
        "same GMAC on both sides", passed, largest if compared else None, 0.0, "share", detail or "every type equal"
    )
