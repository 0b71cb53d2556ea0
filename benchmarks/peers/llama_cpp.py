"""llama.cpp in this process: the same tokens, the same weights, timed and traced beside the engine.

On a CPU its evaluation callback gives each graph node's start and end, so that its time splits into the same kernel
classes as the engine's. On a GPU the tracer sees its kernels like any others.
"""

from __future__ import annotations

import ctypes as c
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..attribution.events import OperationLabel, Trace
from ..capture.spans import spans_trace
from .llama_library import EVALUATION_CALLBACK, Library, PeerUnavailableError, Tensor, load_library
from .llama_nodes import label_node

FLASH_ATTENTION_ON = 1


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """How the peer runs. ``ubatch`` is its own: it is measured at several and the fastest is the baseline."""

    nt: int
    ubatch: int = 512
    threads: int = 1
    gpu_layers: int = 0


class LlamaWeights:
    """A model as the library holds it: loaded once, for as many contexts as are opened on it."""

    def __init__(self, model: Path, gpu_layers: int = 0) -> None:
        """Load ``model``. Raises PeerUnavailableError where there is no library or it cannot read the file."""
        self.llama: Library = load_library()
        self.path, self.gpu_layers = model, gpu_layers
        parameters = self.llama.handle.llama_model_default_params()
        parameters.n_gpu_layers = gpu_layers
        self.handle: int | None = self.llama.handle.llama_model_load_from_file(str(model).encode(), parameters)
        if not self.handle:
            raise PeerUnavailableError(f"llama.cpp ({self.llama.version}) cannot load {model.name}; llama-bench says why")

    def close(self) -> None:
        """Free the model, after every context on it; safe to call twice."""
        if self.handle:
            self.llama.handle.llama_model_free(self.handle)
        self.handle = None


class LlamaCpp:
    """One context on a loaded model. Use as a context manager: it frees the library's memory."""

    name = "llama.cpp"

    def __init__(self, model: Path | LlamaWeights, options: PeerOptions, *, traced: bool = False) -> None:
        """``model``: a file, loaded for this context alone, or weights that stay the caller's to close.

        Raises PeerUnavailableError where there is no library, or it cannot read the file.
        """
        self.weights = LlamaWeights(model, options.gpu_layers) if isinstance(model, Path) else model
        self._owns_weights = isinstance(model, Path)
        self._library: Library = self.weights.llama
        self._lib: Any = self._library.handle
        self.options = options
        self._spans: list[tuple[int, int, OperationLabel]] = []
        self._began = 0
        self._labels: dict[bytes, OperationLabel | None] = {}
        self._callback = EVALUATION_CALLBACK(self._on_node)
        self._context: int | None = None
        try:
            self._context = self._open_context(traced)
        except PeerUnavailableError:
            self.close()
            raise

    @property
    def version(self) -> str:
        return self._library.version

    @property
    def backend(self) -> str:
        """ "cuda" where layers were offloaded, else "cpu"."""
        return "cuda" if self.options.gpu_layers else "cpu"

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return int(self._lib.llama_vocab_n_tokens(self._lib.llama_model_get_vocab(self.weights.handle)))

    def prefill(self, tokens: Sequence[int]) -> int:
        """Whole prefill from an empty cache; host ns from the call to the last token's logits, device synchronised."""
        buffer = self._buffer(tokens)
        self._lib.llama_memory_clear(self._lib.llama_get_memory(self._context), True)
        self._lib.llama_synchronize(self._context)
        began = time.perf_counter_ns()
        status = self._lib.llama_decode(self._context, self._lib.llama_batch_get_one(buffer, len(tokens)))
        self._lib.llama_synchronize(self._context)
        ended = time.perf_counter_ns()
        if status != 0:
            raise PeerUnavailableError(f"llama.cpp: llama_decode of {len(tokens)} tokens returned {status}, expected 0")
        return ended - began

    def decode(self, token: int) -> int:
        """Append one token to what is in the cache; host ns until its logits are there."""
        buffer = self._buffer([token])
        began = time.perf_counter_ns()
        status = self._lib.llama_decode(self._context, self._lib.llama_batch_get_one(buffer, 1))
        self._lib.llama_synchronize(self._context)
        ended = time.perf_counter_ns()
        if status != 0:
            raise PeerUnavailableError(f"llama.cpp: llama_decode of one token returned {status}, expected 0")
        return ended - began

    def traced_prefill(self, tokens: Sequence[int]) -> Trace:
        """The same with one launch per graph node. Only for a peer opened with ``traced=True``."""
        self._spans.clear()
        began = time.perf_counter_ns()
        self.prefill(tokens)
        ended = time.perf_counter_ns()
        return spans_trace(self._spans, (began, ended))

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Logits of every position, shape [tokens, vocabulary]."""
        count = len(tokens)
        batch = self._lib.llama_batch_init(count, 0, 1)
        try:
            _fill(batch, tokens)
            self._lib.llama_memory_clear(self._lib.llama_get_memory(self._context), True)
            status = self._lib.llama_decode(self._context, batch)
            if status != 0:
                raise PeerUnavailableError(f"llama.cpp: llama_decode of {count} tokens returned {status}, expected 0")
            pointer = self._lib.llama_get_logits(self._context)
            return np.ctypeslib.as_array(pointer, (count, self.vocabulary)).copy()
        finally:
            self._lib.llama_batch_free(batch)

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """Token ids as llama.cpp sees the text."""
        data = text.encode()
        buffer = (c.c_int32 * (len(data) + 8))()
        vocab = self._lib.llama_model_get_vocab(self.weights.handle)
        count = self._lib.llama_tokenize(vocab, data, len(data), buffer, len(buffer), add_special, parse_special)
        if count < 0:
            raise PeerUnavailableError(f"llama.cpp: the text needs {-count} tokens, room for {len(buffer)}; shorten it")
        return list(buffer[:count])

    def close(self) -> None:
        """Free the context, and the model where it is this one's own; safe to call twice."""
        if self._context is not None:
            self._lib.llama_free(self._context)
        self._context = None
        if self._owns_weights:
            self.weights.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open_context(self, traced: bool) -> int:
        options, model = self.options, self.weights.path
        parameters = self._lib.llama_context_default_params()
        parameters.n_ctx = options.nt
        parameters.n_batch = options.nt
        parameters.n_ubatch = min(options.ubatch, options.nt)
        parameters.n_threads = parameters.n_threads_batch = options.threads
        if options.gpu_layers:
            parameters.flash_attn_type = FLASH_ATTENTION_ON
        if traced:
            parameters.cb_eval = c.cast(self._callback, c.c_void_p)
        handle = self._lib.llama_init_from_model(self.weights.handle, parameters)
        if not handle:
            raise PeerUnavailableError(f"llama.cpp: no context of {options.nt} tokens for {model.name}; out of memory?")
        seen = int(self._lib.llama_n_ubatch(handle))
        if seen != parameters.n_ubatch:
            self._lib.llama_free(handle)
            raise PeerUnavailableError(f"llama.cpp: asked for ubatch {parameters.n_ubatch}, it runs {seen}: not matched")
        return int(handle)

    def _buffer(self, tokens: Sequence[int]) -> Any:
        if len(tokens) > self.options.nt:
            raise PeerUnavailableError(f"llama.cpp: {len(tokens)} tokens for a context of {self.options.nt}")
        return (c.c_int32 * len(tokens))(*tokens)

    def _on_node(self, address: int, ask: bool, data: int | None) -> bool:
        if ask:
            self._began = time.perf_counter_ns()
            return True
        ended = time.perf_counter_ns()
        # The structure's bytes tell two nodes apart; labelling each node once keeps Python's time out of the gaps.
        key = c.string_at(address, c.sizeof(Tensor))
        if key not in self._labels:
            self._labels[key] = label_node(self._lib, Tensor.from_address(address), address)
        label = self._labels[key]
        if label is not None:
            self._spans.append((self._began, ended, label))
        return True


def _fill(batch: Any, tokens: Sequence[int]) -> None:
    """Write tokens into a batch that wants every position's logits."""
    token = c.cast(batch.token, c.POINTER(c.c_int32))
    position = c.cast(batch.pos, c.POINTER(c.c_int32))
    sequences = c.cast(batch.n_seq_id, c.POINTER(c.c_int32))
    sequence = c.cast(batch.seq_id, c.POINTER(c.POINTER(c.c_int32)))
    wanted = c.cast(batch.logits, c.POINTER(c.c_int8))
    for i, value in enumerate(tokens):
        token[i], position[i], sequences[i], wanted[i] = value, i, 1, 1
        sequence[i][0] = 0
    batch.n_tokens = len(tokens)
