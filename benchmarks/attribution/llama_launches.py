"""Which weight each matrix product of a llama.cpp trace worked on, from launch order and quantisation type.

llama.cpp says nothing of tensors in a trace: all of attn_v and ffn_down is one symbol. But it launches a known graph in a
known order, so the sequence of types identifies the tensors, and a trace of anything else is refused rather than guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .classes import GGML_TYPES
from .errors import UserFacingError
from .events import OperationLabel, Trace
from .macs import GEMV_MAX_ROWS, AttentionShape, TensorShape, block_and_role, causal_attention_macs, linear_work
from .symbols import function_name, readable

LAUNCH_ORDER = ("attn_q", "attn_v", "attn_k", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""Products of one block as llama.cpp's graph runs them (observed in traces of build 0c1e570; q, v, k is its own order)."""

_TYPE_ARGUMENT = re.compile(r"<\(ggml_type\)(\d+)")
Index = NDArray[np.int64]


class LaunchOrderError(UserFacingError):
    """The trace's matrix products are not those of this model at this length."""


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Launches of one kind in time order: their rows and the type of each."""

    row: Index
    kind: tuple[str, ...]


def label_llama_launches(
    trace: Trace,
    tensors: Iterable[TensorShape],
    tokens: int,
    ubatch: int,
    *,
    attention: AttentionShape | None = None,
    device: int | None = None,
) -> Trace:
    """The trace with an operation for each matrix product (and attention), for one or more whole prefills of ``tokens``.

    Tokens go through in passes of ``ubatch``; the last block's feed-forward and the head run for the last token only. A
    stream-k fix-up belongs to the product before it. Raises LaunchOrderError where the sequence of types differs.
    """
    if trace.launches is None:
        raise LaunchOrderError(f"{trace.source_format}: no timeline, so no launch order; give a trace with times")
    on_device = np.ones(len(trace.launches), np.bool_) if device is None else trace.launches.device == device
    products = _sequence(trace, on_device, "mul_mat_q")
    vectors = _sequence(trace, on_device, "mul_mat_vec_q")
    plan = _plan(list(tensors), tokens, ubatch, attention)
    wide = [label for label in plan if label.kernel_class and label.kernel_class.endswith("GEMM")]
    narrow = [label for label in plan if label.name != "attention" and label not in wide]
    prefills = _count(products, wide, tokens)

    operation = np.full(len(trace.launches), -1, dtype=np.int32)
    labels: list[OperationLabel] = []

    def assign(rows: Index, chosen: list[OperationLabel]) -> None:
        operation[rows] = np.arange(len(labels), len(labels) + len(chosen), dtype=np.int32)
        labels.extend(chosen)

    assign(products.row, wide * prefills)
    narrow = _fuse(narrow, len(vectors.row) // prefills if len(vectors.row) % prefills == 0 else -1)
    if [label.quantisation for label in narrow] * prefills == list(vectors.kind):
        assign(vectors.row, narrow * prefills)
    flash = _rows_of(trace, on_device, ("flash_attn_ext_f16", "flash_attn_ext_vec", "flash_attn_tile"))
    scores = [label for label in plan if label.name == "attention"]
    if attention is not None and flash.size == len(scores) * prefills:
        assign(flash, scores * prefills)
    fix_ups = _rows_of(trace, on_device, ("mul_mat_q_stream_k_fixup",))
    start = trace.launches.start
    before = np.searchsorted(start[products.row], start[fix_ups], side="right") - 1
    operation[fix_ups[before >= 0]] = operation[products.row[before[before >= 0]]]
    return replace(trace, launches=replace(trace.launches, operation=operation), operations=tuple(labels))


def _plan(tensors: list[TensorShape], tokens: int, ubatch: int, attention: AttentionShape | None) -> list[OperationLabel]:
    """Every product of one prefill in launch order, pass by pass."""
    order = {role: place for place, role in enumerate(LAUNCH_ORDER)}

    def place(tensor: TensorShape) -> tuple[int, int]:
        block, role = block_and_role(tensor.name)
        return (len(tensors) if block is None else block, order.get(role, len(order)))

    ordered = sorted(tensors, key=place)
    plan: list[OperationLabel] = []
    for done in range(0, tokens, ubatch):
        rows = min(ubatch, tokens - done)
        final = done + rows == tokens
        labels = linear_work(ordered, rows, last_block_ffn_tokens=1 if final else 0, logits_tokens=1 if final else 0)
        for label in labels:
            if attention is not None and label.name == "attn_output":
                macs = causal_attention_macs(attention, rows, done)
                plan.append(OperationLabel("attention", "attention", label.layer, m=rows, macs=macs))
            if label.m:
                plan.append(label)
    return plan


def _count(products: _Sequence, plan: list[OperationLabel], tokens: int) -> int:
    """How many whole prefills the products are; refuses a sequence that is not exactly that."""
    found, expected = len(products.row), len(plan)
    if expected == 0 or found == 0 or found % expected:
        raise LaunchOrderError(
            f"{found} mul_mat_q launches seen, expected a multiple of {expected} for a prefill of {tokens} tokens; "
            "name the model, tokens and ubatch of this trace"
        )
    wanted = [label.quantisation for label in plan] * (found // expected)
    for position, (seen, want) in enumerate(zip(products.kind, wanted, strict=True)):
        if seen != want:
            label = plan[position % expected]
            raise LaunchOrderError(
                f"mul_mat_q launch {position + 1} works on {seen}, expected {want} ({label.name} of block {label.layer}); "
                "this trace is of another model"
            )
    return found // expected


def _fuse(narrow: list[OperationLabel], launches: int) -> list[OperationLabel]:
    """llama.cpp runs gate and up of one token in one fused launch where it can: then the two labels become one."""
    if launches == len(narrow):
        return narrow
    fused: list[OperationLabel] = []
    for label in narrow:
        before = fused[-1] if fused else None
        if (
            before is not None
            and (before.name, label.name) == ("ffn_gate", "ffn_up")
            and label.m
            and label.m <= GEMV_MAX_ROWS
        ):
            both = (before.macs or 0) + (label.macs or 0)
            fused[-1] = replace(before, name="ffn_gate + ffn_up", n=(before.n or 0) + (label.n or 0), macs=both)
        else:
            fused.append(label)
    return fused


def _sequence(trace: Trace, on_device: NDArray[np.bool_], function: str) -> _Sequence:
    assert trace.launches is not None
    rows = _rows_of(trace, on_device, (function,))
    kinds = {}
    for index in np.unique(trace.launches.name[rows]):
        match = _TYPE_ARGUMENT.search(readable(trace.names[index]))
        kinds[int(index)] = GGML_TYPES.get(int(match.group(1)), "?") if match else "?"
    return _Sequence(rows, tuple(kinds[int(index)] for index in trace.launches.name[rows]))


def _rows_of(trace: Trace, on_device: NDArray[np.bool_], functions: tuple[str, ...]) -> Index:
    """Rows of launches of these functions, in time order."""
    assert trace.launches is not None
    wanted = np.zeros(len(trace.names), dtype=np.bool_)
    for index in np.unique(trace.launches.name).tolist():
        wanted[index] = function_name(trace.names[index]) in functions
    rows = np.flatnonzero(wanted[trace.launches.name] & on_device)
    return rows[np.argsort(trace.launches.start[rows], kind="stable")]
