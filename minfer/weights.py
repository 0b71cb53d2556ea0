"""Takes a model's tensors out of its file by name, each held against the shape that the config implies."""

from __future__ import annotations

from .backends import Array, Backend, Matrix
from .errors import MinferError
from .gguf import GgufFile, Tensor
from .quantisation import Float32, is_weight


class Weights:
    """Look-ups that raise MinferError naming the file, the tensor, the shape seen and the shape expected."""

    def __init__(self, file: GgufFile, backend: Backend) -> None:
        self.path = file.path
        self._file = file
        self._backend = backend
        self._matrices: dict[str, Matrix] = {}

    def has(self, name: str) -> bool:
        return name in self._file.tensors

    def matrix(self, name: str, *shape: int) -> Matrix:
        """A weight [n, k] or [experts, n, k]; the same tensor asked for twice (tied embeddings) is one matrix."""
        if name not in self._matrices:
            self._matrices[name] = self._backend.matrix(self._tensor(name, shape))
        return self._matrices[name]

    def vector(self, name: str, n: int) -> Array:
        return self._backend.vector(self._tensor(name, (n,)))

    def optional_vector(self, name: str, n: int) -> Array | None:
        return self.vector(name, n) if self.has(name) else None

    def optional_floats(self, name: str, n: int) -> Float32 | None:
        """A small tensor [n] that the model itself reads while it is built, or None."""
        return self._tensor(name, (n,)).dequantise() if self.has(name) else None

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self._file.tensors.get(name)
        if tensor is None:
            raise MinferError(f"{self._file.path}: tensor {name!r} is missing (shape {list(shape)}); convert it again")
        if tensor.shape != shape:
            raise MinferError(
                f"{tensor.file}: tensor {name!r} has shape {list(tensor.shape)}, the metadata implies {list(shape)}; "
                f"convert the model again"
            )
        if not is_weight(tensor.type):
            raise MinferError(f"{tensor.file}: tensor {name!r} is {tensor.type.name}, expected weights; convert it again")
        return tensor
