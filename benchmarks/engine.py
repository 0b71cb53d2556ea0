"""The only file that imports minfer: the package of the MEASURED commit, through whatever API that commit had.

Everything else in the suite speaks to ``MeasuredEngine``. A commit whose API cannot do what is asked raises
CommitTooOldError, which the benchmarks turn into "skipped", never into a failure.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .attribution.errors import UserFacingError
from .attribution.events import OperationLabel
from .attribution.macs import AttentionShape, TensorShape
from .attribution.record import Model
from .peers.llama_library import PeerUnavailableError
from .peers.transformers import DecoderShape


class CommitTooOldError(UserFacingError):
    """The measured commit has no engine, or none that can do this."""


class WrongCommitError(UserFacingError):
    """The imported package is not the measured commit's: measuring it would file a result under the wrong name."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How to open the engine. None leaves the engine's own default."""

    backend: str = "auto"
    ubatch: int | None = None
    context: int | None = None
    """Tokens that the KV cache holds."""
    gates: Mapping[str, bool | int | str] = field(default_factory=dict)


def import_minfer() -> Any:
    """The measured commit's package. Raises CommitTooOldError without one, WrongCommitError if it comes from elsewhere."""
    try:
        package = importlib.import_module("minfer")
    except ModuleNotFoundError as error:
        raise CommitTooOldError(f"minfer: this commit has no such package ({error})") from error
    if not hasattr(package, "load"):
        raise CommitTooOldError("minfer.load: this commit's engine cannot load a model yet")
    expected = os.environ.get("ASV_PYTHONPATH") or os.environ.get("PYTHONPATH", "")
    source = Path(str(package.__file__)).resolve()
    if os.environ.get("ASV_COMMIT") and expected:
        roots = [Path(entry).resolve() for entry in expected.split(os.pathsep) if entry]
        if not any(source.is_relative_to(root) for root in roots):
            raise WrongCommitError(
                f"minfer: imported from {source.parent}, expected the checkout of commit {os.environ['ASV_COMMIT'][:8]}; "
                "an installed minfer shadows it: pip uninstall minfer"
            )
    return package


class MeasuredEngine:
    """One loaded model of the measured commit's engine."""

    name = "minfer"

    def __init__(self, model: Path, options: EngineOptions) -> None:
        """Load ``model``. What the engine itself raises (an unreadable file, no device) passes through."""
        package = import_minfer()
        self.version = str(getattr(package, "__version__", "unknown"))
        arguments: dict[str, Any] = {"backend": options.backend}
        if options.ubatch is not None:
            arguments["ubatch"] = options.ubatch
        if options.context is not None:
            arguments["context"] = options.context
        if options.gates:
            arguments["gates"] = dict(options.gates)
        self._engine = package.load(model, **arguments)
        self._path = model
        self.options = options
        """As given; None leaves the engine's default."""
        self._made_tokenizer: Any = None

    @property
    def path(self) -> Path:
        """The model's file."""
        return self._path

    @property
    def backend(self) -> str:
        """ "numpy" or "cuda"."""
        return str(self._engine.backend.name)

    @property
    def ubatch(self) -> int:
        return int(self._engine.ubatch)

    @property
    def gates(self) -> dict[str, bool | int | str]:
        return dict(self._engine.gates)

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return int(self._engine.config.vocabulary)

    def memory(self) -> dict[str, int]:
        """Bytes by purpose, as the engine accounts for them."""
        return {str(name): int(size) for name, size in self._engine.memory().items()}

    def prefill(self, tokens: Sequence[int]) -> int:
        """Whole prefill from an empty cache; host ns from the call to the last token's logits, device synchronised."""
        ids = np.asarray(tokens, dtype=np.int64)
        self._engine.reset()
        self._engine.synchronize()
        began = time.perf_counter_ns()
        self._engine.prefill(ids)
        self._engine.synchronize()
        return time.perf_counter_ns() - began

    def decode(self, token: int) -> int:
        """Append one token to what was run before; host ns until its logits are there."""
        self._engine.synchronize()
        began = time.perf_counter_ns()
        self._engine.decode(token)
        self._engine.synchronize()
        return time.perf_counter_ns() - began

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Logits of every position, shape [tokens, vocabulary]."""
        return np.asarray(self._engine.logits(np.asarray(tokens, dtype=np.int64)), dtype=np.float32)

    @property
    def has_vocabulary(self) -> bool:
        """Whether the file can turn texts into tokens."""
        return self._engine.file.metadata.get("tokenizer.ggml.model") not in (None, "none", "no_vocab")

    def tokenize(self, text: str) -> list[int]:
        """Token ids as the engine sees the text, special tokens added and parsed."""
        return [int(token) for token in self._tokenizer().encode(text)]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, control tokens shown."""
        return str(self._tokenizer().decode(tokens, special=True))

    def greedy(self, tokens: Sequence[int], steps: int) -> list[int]:
        """The most likely continuation, token by token."""
        chosen: list[int] = []
        logits = self._engine.prefill(np.asarray(tokens, dtype=np.int64))
        while len(chosen) < steps:
            chosen.append(int(np.argmax(logits)))
            if len(chosen) < steps:
                logits = self._engine.decode(chosen[-1])
        return chosen

    def metadata(self) -> Mapping[str, Any]:
        """What the file says of itself."""
        metadata: Mapping[str, Any] = self._engine.file.metadata
        return metadata

    def weights(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and row-major shape of every tensor."""
        return [(name, tuple(tensor.shape)) for name, tensor in self._engine.file.tensors.items()]

    def float32_weights(self) -> Iterator[NDArray[np.float32]]:
        """The values of every tensor, in the order of ``weights``, one at a time."""
        return (tensor.dequantise() for tensor in self._engine.file.tensors.values())

    def observe(self, observer: Any | None) -> None:
        """Let ``observer`` see each operation (its begin and end), or nobody."""
        self._engine.observer = observer

    def operations(self, nt: int) -> list[OperationLabel]:
        """What a prefill of ``nt`` tokens runs, in order."""
        return [operation_label(operation) for operation in self._engine.operations(nt)]

    def model(self) -> Model:
        """The weights: digest, architecture, how many weights of each type."""
        file = self._engine.file
        mix: dict[str, int] = {}
        for tensor in file.tensors.values():
            mix[quantisation_name(tensor)] = mix.get(quantisation_name(tensor), 0) + int(np.prod(tensor.shape))
        return Model(
            name=self._path.stem,
            digest=str(file.digest()),
            architecture=str(self._engine.config.architecture),
            parameters=sum(mix.values()),
            quantisation_mix=mix,
        )

    def _tokenizer(self) -> Any:
        if self._made_tokenizer is None:
            try:
                tokenizer = importlib.import_module("minfer.tokenizer").Tokenizer
            except ModuleNotFoundError as error:
                raise CommitTooOldError("minfer.tokenizer: this commit's engine cannot read texts yet") from error
            self._made_tokenizer = tokenizer.from_metadata(self._engine.file.metadata, self._path.name)
        return self._made_tokenizer

    def close(self) -> None:
        """Drop the model."""
        self._engine = None


def quantisation_name(tensor: Any) -> str:
    """ggml's name of a tensor's type, in ggml's own spelling ("q4_K", "f32")."""
    return str(tensor.type.name)


def operation_label(operation: Any) -> OperationLabel:
    """The engine's description of an operation as the attribution core's."""
    return OperationLabel(
        name=operation.name,
        kernel_class=operation.kernel_class,
        layer=operation.layer,
        m=operation.m,
        n=operation.n,
        k=operation.k,
        quantisation=operation.quantisation,
        macs=operation.macs,
        bytes=operation.bytes,
    )


def weight_table(model: Path) -> list[tuple[str, int, int, str]]:
    """(tensor name, n, k, quantisation) of every two-dimensional weight of a GGUF file, read without loading it."""
    gguf = importlib.import_module("minfer.gguf")
    table = []
    for name, tensor in gguf.open_gguf(model).tensors.items():
        if len(tensor.shape) >= 2:
            *outer, k = tensor.shape
            table.append((str(name), int(np.prod(outer)), int(k), quantisation_name(tensor)))
    return table


@dataclass(frozen=True, slots=True)
class ModelShapes:
    """What a GGUF file says of the work of a token, read without loading a weight."""

    tensors: tuple[TensorShape, ...]
    attention: tuple[AttentionShape, ...]
    """One a block; empty where the engine does not know the architecture."""
    experts_used: int | None = None


def model_shapes(model: Path) -> ModelShapes:
    """The shapes of any GGUF file. Raises UserFacingError where it cannot be read."""
    gguf, config = importlib.import_module("minfer.gguf"), importlib.import_module("minfer.config")
    error_kind = importlib.import_module("minfer.errors").MinferError
    try:
        file = gguf.open_gguf(model)
    except (OSError, error_kind) as error:
        raise UserFacingError(f"{model}: not a readable GGUF file ({error})") from error
    tensors = []
    for name, tensor in file.tensors.items():
        if len(tensor.shape) >= 2:
            *outer, n, k = (int(size) for size in tensor.shape)
            tensors.append(TensorShape(str(name), n, k, quantisation_name(tensor), int(np.prod(outer or [1]))))
    try:
        shape = config.read_config(str(model), file.metadata, 0)
    except error_kind:
        return ModelShapes(tuple(tensors), ())
    blocks = []
    for layer in range(shape.layers):
        everywhere = shape.sliding_window is None or (layer + 1) % shape.sliding_pattern == 0
        blocks.append(AttentionShape(shape.heads, shape.key_length, None if everywhere else shape.sliding_window))
    return ModelShapes(tuple(tensors), tuple(blocks), shape.experts_used or None)


def decoder_shape(model: Path) -> DecoderShape:
    """A GGUF file's decoder in numbers. Raises PeerUnavailableError for a file that is no dense decoder."""
    file = importlib.import_module("minfer.gguf").open_gguf(model)
    architecture = str(file.metadata["general.architecture"])

    def number(name: str, default: float | None = None) -> float:
        value = file.metadata.get(f"{architecture}.{name}", default)
        if value is None:
            raise PeerUnavailableError(f"{model.name}: no {architecture}.{name}; its shape is not a dense decoder's")
        return float(value)

    hidden, heads = int(number("embedding_length")), int(number("attention.head_count"))
    return DecoderShape(
        architecture=architecture,
        layers=int(number("block_count")),
        hidden=hidden,
        ffn=int(number("feed_forward_length")),
        heads=heads,
        kv_heads=int(number("attention.head_count_kv", heads)),
        head_dim=int(number("attention.key_length", hidden // heads)),
        vocabulary=int(file.tensors["token_embd.weight"].shape[0]),
        rope_base=number("rope.freq_base", 10000.0),
        epsilon=number("attention.layer_norm_rms_epsilon"),
    )
