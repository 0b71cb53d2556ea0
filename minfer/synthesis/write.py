"""Writes a synthetic model: all sizes known first, then one tensor after another, at constant memory."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod, sqrt
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from gguf.constants import GGMLQuantizationType

from ..errors import MinferError
from .blocks import constant_like, random_tensor
from .mixes import bytes_of, named_mix, type_of
from .shapes import Plan, Shape, metadata, named_shape, tensors

Progress = Callable[[int, int], None]
"""Called with the bytes written so far and in all."""


def synthesise(
    out: Path,
    shape_name: str,
    mix_name: str,
    *,
    architecture: str | None = None,
    seed: int = 0,
    force: bool = False,
    progress: Progress = lambda done, total: None,
) -> int:
    """Write a model of random weights to ``out``; returns its size in bytes.

    The same names and seed give the same file. ``out`` appears only when it is complete. Raises MinferError: unknown names,
    a file that is already there (unless ``force``), no room, a folder that cannot be written to.
    """
    shape, mix = named_shape(shape_name, architecture), named_mix(mix_name)
    plans = [(plan, type_of(plan, shape, mix)) for plan in tensors(shape)]
    total = sum(bytes_of(plan.shape, kind) for plan, kind in plans)
    if out.exists() and not force:
        raise MinferError(f"{out}: is already there; give --force to replace it")
    try:
        free = shutil.disk_usage(out.parent).free
        if total + (1 << 20) > free:
            raise MinferError(f"{out.parent}: needs {total / 1e9:.2f} GB, {free / 1e9:.2f} are free; give another folder")
        with _complete_or_nothing(out) as unfinished:
            name = f"{shape_name} {mix_name}"
            _write(unfinished, shape, name, int(mix.file_type), plans, seed, lambda done: progress(done, total))
    except OSError as error:
        raise MinferError(f"{out}: cannot be written ({error.strerror}); give another place") from error
    return out.stat().st_size


@contextmanager
def _complete_or_nothing(out: Path) -> Iterator[Path]:
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def _write(
    path: Path,
    shape: Shape,
    name: str,
    file_type: int,
    plans: list[tuple[Plan, GGMLQuantizationType]],
    seed: int,
    progress: Callable[[int], None],
) -> None:
    writer = GGUFWriter(path, shape.architecture)
    for key, value in {**metadata(shape, name), "general.file_type": file_type}.items():
        if key == "general.architecture":
            continue  # The writer has put it there itself.
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_float32(key, value)
    for plan, kind in plans:
        writer.add_tensor_info(plan.name, plan.shape, np.dtype(np.float32), bytes_of(plan.shape, kind), raw_dtype=kind)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout is not None
    (file,) = writer.fout
    writer.write_padding(file, file.tell())
    done = 0
    try:
        for plan, kind in plans:
            for piece in _pieces(plan, kind, shape, seed):
                file.write(piece.data)
                done += piece.nbytes
                progress(done)
            writer.write_padding(file, bytes_of(plan.shape, kind))
    finally:
        writer.close()


def _pieces(plan: Plan, kind: GGMLQuantizationType, shape: Shape, seed: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng([seed, zlib.crc32(plan.name.encode())])
    if kind is GGMLQuantizationType.F32:
        yield constant_like(plan.name, prod(plan.shape), random)
        return
    # A sum over k inputs of deviation 1 then has deviation 1. An embedding of its own is looked up, not summed over.
    looked_up = plan.role == "token_embd" and not shape.tied
    yield from random_tensor(kind, prod(plan.shape), 1.0 if looked_up else 1 / sqrt(plan.shape[-1]), random)
