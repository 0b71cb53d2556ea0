"""The engine: one loaded model, its KV cache, and what callers do with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .backends import Backend, Gates, KvCache, make_backend
from .backends.shapes import ShapeBackend, ShapeCache
from .config import ModelConfig, read_config
from .errors import MinferError
from .forward import Forward
from .gguf import GgufFile, open_gguf
from .models import model_class
from .models.decoder import Decoder
from .operations import Observer, Operation
from .weights import Weights

Float32 = NDArray[np.float32]

LOGITS_BYTES = 32 << 20
"""Of logits at once where every token's are wanted: a row of them is as long as the vocabulary."""
DEFAULT_CONTEXT = 8192
"""The KV cache's limit where the caller names none and the model was made for more."""


class Engine:
    """Runs one model. Tokens enter at ``position``; the KV cache holds all before it."""

    def __init__(self, file: GgufFile, config: ModelConfig, backend: Backend, ubatch: int | None, context: int) -> None:
        self.file = file
        self.config = config
        self.backend = backend
        self.context = context
        self.position = 0
        self.observer: Observer | None = None
        self._model = _build(file, config, backend)
        self._described: Decoder | None = None
        self._cache: KvCache = backend.kv_cache(
            config.layers, context, config.kv_heads, config.key_length, config.value_length
        )
        self.ubatch = ubatch or min(context, backend.default_ubatch(_activation_bytes(config)))

    @property
    def gates(self) -> dict[str, bool | int | str]:
        """The backend's switches in force, to be recorded with results."""
        return dict(self.backend.gates)

    def prefill(self, tokens: Sequence[int] | NDArray[np.integer]) -> Float32:
        """Run a prompt from position 0; logits [vocabulary] of its last token. Raises MinferError."""
        self.reset()
        ids = self._checked(tokens)
        logits: Float32 | None = None
        for start, part, rows in _ubatches(ids, self.ubatch, len(ids), only_last=True):
            logits = self._run(start, part, rows)
        assert logits is not None
        last: Float32 = logits[-1]
        return last

    def logits(self, tokens: Sequence[int] | NDArray[np.integer]) -> Float32:
        """Run a text from position 0; logits [tokens, vocabulary] of every token.

        Beyond the result itself, which is the caller's, it takes LOGITS_BYTES, or a row where that is longer; as scratch of
        the backend they are part of ``memory()``.
        """
        self.reset()
        ids = self._checked(tokens)
        out = np.empty((len(ids), self.config.vocabulary), np.float32)
        ubatch = min(self.ubatch, max(1, LOGITS_BYTES // (4 * self.config.vocabulary)))
        for start, part, rows in _ubatches(ids, ubatch, len(ids), only_last=False):
            out[start : start + len(part)] = self._run(start, part, rows)
        return out

    def decode(self, token: int) -> Float32:
        """Append one token; logits [vocabulary] of what follows it."""
        logits = self._run(self.position, self._checked([token]), 1)
        assert logits is not None
        last: Float32 = logits[-1]
        return last

    def reset(self) -> None:
        """Forget all tokens."""
        self.position = 0

    def synchronize(self) -> None:
        """Wait until the device has done all that was asked for."""
        self.backend.synchronize()

    def memory(self) -> dict[str, int]:
        """Bytes by purpose. "weights mapped" is the file, which the system may drop and read again."""
        return {"weights mapped": self.file.nbytes, **self.backend.memory()}

    def operations(self, nt: int, ubatch: int | None = None) -> list[Operation]:
        """What a prefill of ``nt`` tokens runs, in order, without running it."""
        if nt < 1:
            raise MinferError(f"a prefill of {nt} tokens has no operations; expected 1 or more")
        shapes = ShapeBackend()
        if self._described is None:
            self._described = _build(self.file, self.config, shapes)
        collected = _Collector()
        cache = ShapeCache(nt, self.config.value_length)
        ids = np.broadcast_to(np.int32(0), (nt,))
        for start, part, rows in _ubatches(ids, ubatch or self.ubatch, nt, only_last=True):
            self._described.forward(Forward(shapes, collected, cache, start, rows), shapes.tokens(part))
        return collected.operations

    def _run(self, start: int, ids: NDArray[np.int32], rows: int) -> Float32 | None:
        self.file.check_whole()
        run = Forward(self.backend, self.observer, self._cache, start, rows)
        tokens = self.backend.tokens(ids)
        if self.observer is None:
            logits = self.backend.replay((len(ids), rows, start), lambda: self._model.forward(run, tokens))
        else:
            logits = self._model.forward(run, tokens)
        self.position = start + len(ids)
        return None if logits is None else self.backend.to_numpy(logits)

    @property
    def _name(self) -> str:
        return self.file.path.name

    def _checked(self, tokens: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int32]:
        ids = np.asarray(tokens)
        if ids.ndim != 1 or len(ids) == 0 or ids.dtype.kind not in "iu":
            raise MinferError(f"{self._name}: tokens are {ids.dtype} of shape {ids.shape}, expected a row of whole numbers")
        if self.position + len(ids) > self.context:
            raise MinferError(
                f"{self._name}: {self.position + len(ids)} tokens do not fit the context of {self.context}; "
                f"shorten the text, or load with a larger context (the model was made for {self.config.context})"
            )
        # A negative one reads as a huge one: the device waits meanwhile, so one pass over them has to do.
        if ids.astype(np.int64, copy=False).view(np.uint64).max() >= self.config.vocabulary:
            wrong = np.nonzero((ids < 0) | (ids >= self.config.vocabulary))[0][0]
            raise MinferError(
                f"{self._name}: token {wrong} is {ids[wrong]}, expected 0 to {self.config.vocabulary - 1}; "
                f"tokenize with this model's own tokenizer"
            )
        return ids.astype(np.int32)


def load(
    path: str | Path,
    *,
    backend: str = "auto",
    ubatch: int | None = None,
    context: int | None = None,
    gates: Gates | None = None,
) -> Engine:
    """Open a GGUF model and make it ready to run.

    ``backend``: "auto" (cuda where a device and CuPy are usable, else numpy), "numpy" or "cuda". ``ubatch``: tokens run at
    once. ``context``: most tokens that the KV cache may hold. ``gates``: the backend's switches. Raises MinferError.
    """
    file = open_gguf(path)
    table = file.tensors.get("token_embd.weight")
    config = read_config(str(path), file.metadata, table.shape[0] if table is not None and len(table.shape) == 2 else 0)
    for what, value in (("ubatch", ubatch), ("context", context)):
        if value is not None and value < 1:
            raise MinferError(f"{what} is {value}, expected 1 or more tokens")
    limit = context or min(config.context, DEFAULT_CONTEXT)
    return Engine(file, config, make_backend(backend, gates or {}), ubatch, limit)


def _activation_bytes(config: ModelConfig) -> int:
    """Bytes of float32 activations that one token needs at a time: the residual, a norm, and the wider half-block."""
    attention = 2 * config.heads * config.key_length + config.kv_heads * (config.key_length + config.value_length)
    used = max(1, config.experts_used)
    feed_forward = 3 * used * max(config.feed_forward, config.expert_feed_forward) + used * config.embedding
    return 4 * (3 * config.embedding + max(attention, feed_forward))


class _Collector:
    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def begin(self, operation: Operation) -> None:
        self.operations.append(operation)

    def end(self, operation: Operation) -> None:
        """Only the order matters here."""


def _build(file: GgufFile, config: ModelConfig, backend: Backend) -> Decoder:
    return model_class(config.architecture, str(file.path))(config, Weights(file, backend))


def _ubatches(
    ids: NDArray[np.int32], ubatch: int, total: int, *, only_last: bool
) -> Iterator[tuple[int, NDArray[np.int32], int]]:
    """Start, tokens and wanted logits rows of each ubatch: all rows, or one row of the last ubatch."""
    for start in range(0, total, ubatch):
        part = ids[start : start + ubatch]
        wanted = len(part) if not only_last else int(start + len(part) == total)
        yield start, part, wanted
