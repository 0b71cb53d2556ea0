"""A peer's float32 copy of the same weights: with it, llama.cpp does not quantise activations, so its answer is exact.

On quantised weights llama.cpp rounds activations to 8 bits for each product. That error is the peer's own; without the copy
it cannot be told from ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weight = tuple[str, tuple[int, ...]]
"""Name and row-major shape."""


def float32_bytes(weights: list[Weight]) -> int:
    """Size of the copy's weights."""
    return sum(4 * int(np.prod(shape)) for _, shape in weights)


def write_float32_copy(
    path: Path, metadata: Mapping[str, Any], weights: list[Weight], values: Iterator[NDArray[np.float32]]
) -> None:
    """Write the model anew with float32 weights, given in the order of ``weights``, one in memory at a time.

    The vocabulary is left out, as logits need none: the copy is to be run on token ids. Raises OSError as files do.
    """
    from gguf import GGUFWriter
    from gguf.constants import GGMLQuantizationType

    architecture = str(metadata["general.architecture"])
    writer = GGUFWriter(path, architecture)
    kept = {
        key: value
        for key, value in metadata.items()
        if not key.startswith(("tokenizer.", "split.")) and key not in ("general.architecture", "general.file_type")
    }
    vocabulary = dict(weights)["token_embd.weight"][0]
    for key, value in {**kept, f"{architecture}.vocab_size": vocabulary, "tokenizer.ggml.model": "none"}.items():
        _add(writer, key, value)
    for name, shape in weights:
        nbytes = 4 * int(np.prod(shape))
        writer.add_tensor_info(name, shape, np.dtype(np.float32), nbytes, raw_dtype=GGMLQuantizationType.F32)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout is not None
    (file,) = writer.fout
    try:
        writer.write_padding(file, file.tell())
        for array in values:
            file.write(np.ascontiguousarray(array, np.float32).data)
            writer.write_padding(file, array.nbytes)
    finally:
        writer.close()


def _add(writer: Any, key: str, value: Any) -> None:
    """One key with the type that llama.cpp expects of it; lists of texts are about the model, not of it."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, np.ndarray):
        writer.add_array(key, value.tolist())
