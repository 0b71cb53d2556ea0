"""What one step of a forward pass is: the vocabulary in which the engine tells an observer what it runs.

The engine calls ``begin`` before and ``end`` after each operation. On the CPU the observer's clock between the two is the
operation's time; on a GPU the observer tags the launches made between the two, and the tracer supplies their times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a forward pass, described from tensor shapes and token count alone, never from time.

    A linear layer multiplies activations [m, k] by a weight [n, k] into [m, n]. Causal attention counts the
    query-key pairs that the mask keeps, for the scores and for the weighted sum of values.
    """

    name: str
    """What the model calls it: "attn_q", "ffn_down", "attention", "attn_norm", "output", ..."""
    kernel_class: str
    """The bucket it belongs to: "q6_K GEMM", "attention", "norm", "rope", "elementwise", "kv write", ..."""
    layer: int | None
    """Index of the transformer block; None for what runs outside the blocks (embedding, final norm, logits)."""
    m: int
    """Rows: tokens that the operation works on."""
    n: int
    """Columns of the result, per token."""
    k: int
    """Length of the reduction; 0 where nothing is reduced."""
    quantisation: str | None
    """ggml's name of the weight's type ("q4_K", "q6_K", "f16", ...); None where there is no weight matrix."""
    macs: int
    """Multiply-accumulates."""
    bytes: int
    """Fewest bytes that it must move: each input read once as stored, each output written once."""


class Observer(Protocol):
    """Is told of each operation as it is run. Calls nest only in the order begin, end."""

    def begin(self, operation: Operation) -> None: ...

    def end(self, operation: Operation) -> None: ...


_UNOBSERVED = nullcontext()


def observed(observer: Observer | None, describe: Callable[[], Operation]) -> AbstractContextManager[None]:
    """Run the body as the operation that ``describe`` gives, which is asked only where somebody observes.

    A decoded token has hundreds of operations, and describing one takes as long as some of them do.
    """
    return _UNOBSERVED if observer is None else _told(observer, describe())


@contextmanager
def _told(observer: Observer, operation: Operation) -> Iterator[None]:
    observer.begin(operation)
    try:
        yield
    finally:
        observer.end(operation)
