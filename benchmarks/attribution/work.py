"""Work for a foreign trace: multiply-accumulates from a model's tensor shapes, given to the classes that did them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .decompose import devices
from .events import Trace
from .llama_launches import LaunchOrderError, label_llama_launches
from .macs import AttentionShape, TensorShape, causal_attention_macs, linear_work, macs_by_class
from .record import ClassTime
from .symbols import function_name

UBATCHES = (512, 2048, 4096, 1024, 8192, 256, 128)
"""Tried in this order where the caller does not say: llama.cpp's default first."""
_PRODUCT = re.compile(r"^(?:\S+ )?(?:GEMM|GEMV)$")


@dataclass(frozen=True, slots=True)
class Work:
    """What is known of the work in a window. ``by_class`` is for classes whose launches bear no label of their own."""

    trace: Trace
    by_class: dict[str, int] = field(default_factory=dict)
    products: int | None = None
    """All linear layers together."""
    notes: tuple[str, ...] = ()


def label(
    trace: Trace,
    tensors: Sequence[TensorShape],
    tokens: int,
    *,
    attention: Sequence[AttentionShape] = (),
    experts_used: int | None = None,
    ubatch: int | None = None,
    device: int | None = None,
) -> Work:
    """Give launches or classes their work for prefills of ``tokens``; ``attention`` has one shape a block.

    llama.cpp's launches are labelled one by one, whole prefills counted from their order. Of any other engine the caller
    says that one pass of ``tokens`` is in the window. Raises LaunchOrderError where a llama.cpp trace is of another model
    or length.
    """
    if trace.launches is not None and any(
        function_name(trace.names[index]) == "mul_mat_q" for index in np.unique(trace.launches.name).tolist()
    ):
        alike = attention[0] if len(set(attention)) == 1 else None
        return _llama(trace, tensors, tokens, alike, ubatch, device)
    labels = linear_work(tensors, tokens, experts_used=experts_used)
    by_class = macs_by_class(labels)
    if attention:
        by_class["attention"] = sum(causal_attention_macs(block, tokens) for block in attention)
    total = sum(macs for name, macs in by_class.items() if _PRODUCT.match(name))
    note = (
        f"work counted from tensor shapes for one pass of {tokens} tokens in the window: true if the window holds just that"
    )
    return Work(trace, by_class, total, (note,))


def _llama(
    trace: Trace,
    tensors: Sequence[TensorShape],
    tokens: int,
    attention: AttentionShape | None,
    ubatch: int | None,
    device: int | None,
) -> Work:
    wanted = devices(trace) if device is None else (device,)
    number = wanted[0] if len(wanted) == 1 else None
    sizes = [ubatch] if ubatch is not None else list(dict.fromkeys([*(min(size, tokens) for size in UBATCHES), tokens]))
    errors: list[LaunchOrderError] = []
    fits: list[tuple[int, int, Trace]] = []
    for size in sizes:
        try:
            labelled = label_llama_launches(trace, tensors, tokens, size, attention=attention, device=number)
        except LaunchOrderError as error:
            errors.append(error)
            continue
        fits.append((_labelled(labelled), size, labelled))
    if not fits:
        raise errors[0]
    # Two prefills of one pass launch the same matrix products as one prefill of two: the head's launch tells them apart,
    # so the reading that explains the most launches is the right one.
    _, size, best = max(fits, key=lambda fit: fit[0])
    return Work(best, notes=(f"work labelled launch by launch: prefills of {tokens} tokens in passes of {size}",))


def _labelled(trace: Trace) -> int:
    assert trace.launches is not None
    return 0 if trace.launches.operation is None else int((trace.launches.operation >= 0).sum())


def give(classes: Iterable[ClassTime], work: Work) -> tuple[tuple[ClassTime, ...], tuple[str, ...]]:
    """Put the work of ``by_class`` on classes that have none, and say what could not be told apart."""
    classes = tuple(classes)
    if not work.by_class:
        return classes, ()
    products = [item for item in classes if _PRODUCT.match(item.name)]
    by_name = dict(work.by_class)
    notes: tuple[str, ...] = ()
    if {item.name for item in products}.isdisjoint(by_name):
        if len(products) == 1 and work.products is not None:
            by_name[products[0].name] = work.products
            notes = (f"all linear layers were counted to {products[0].name!r}, the only class of products",)
        elif products:
            listed = ", ".join(item.name for item in products)
            notes = (f"linear layers run as {listed}: which ran which cannot be told, so their cost is unknown",)
    return tuple(replace(item, macs=by_name.get(item.name)) if item.macs is None else item for item in classes), notes
