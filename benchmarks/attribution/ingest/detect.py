"""Which format a file has, by what is in it: names of files lie, and a gzip around a format is still that format."""

from __future__ import annotations

from pathlib import Path

from ..events import Trace, TraceError
from . import (
    capture_file,
    cupti_tsv,
    kineto_json,
    llama_bench,
    ncu_csv,
    nsys_gpu_trace,
    nsys_kern_sum,
    nsys_sqlite,
)
from .source import read_head, read_text

FORMATS = (
    "nsys .sqlite, torch.profiler or kineto JSON (.gz), nsys stats cuda_gpu_kern_sum or cuda_gpu_trace, ncu --csv, "
    "llama-bench output, our own capture"
)
_ARCHIVES = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd", b"7z\xbc\xaf": "7-zip", b"Rar!": "rar"}
_NSYS_REPORT = (".nsys-rep", ".qdrep", ".qdstrm", ".nsys-rep.gz")
_NCU_REPORT = (".ncu-rep", ".nsight-cuprof-report")


def open_trace(path: str | Path, *, with_ranges: bool = True) -> Trace:
    """Read a trace of any known format. Raises TraceError with one line for everything else.

    ``with_ranges`` false spares reading what only a named window needs.
    """
    path = Path(path)
    head, packed = read_head(path)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(nsys_sqlite.MAGIC):
        if packed:
            raise TraceError(f"{path}: a compressed SQLite file; unpack it with gunzip and name the result")
        return nsys_sqlite.read(path, with_ranges=with_ranges)
    if head.startswith(b"PK\x03\x04"):
        return capture_file.load(path)
    for magic, name in _ARCHIVES.items():
        if head.startswith(magic):
            raise TraceError(f"{path}: a {name} archive; unpack it and name the trace inside")
    if _is_binary(head):
        raise _binary(path)
    if start[:1] in (b"{", b"["):
        known = llama_bench.recognises(head.decode("utf-8", errors="replace"))
        if known is None:
            return kineto_json.read(path)
        return llama_bench.read(read_text(path), path)
    return _from_text(read_text(path), path)


def _from_text(text: str, path: Path) -> Trace:
    if text.startswith(cupti_tsv.HEADER):
        return cupti_tsv.read(text, path)
    if ncu_csv.HEADER.search(text) or ncu_csv.WIDE_HEADER.search(text):
        return ncu_csv.read(text, path)
    if nsys_gpu_trace.HEADER.search(text):
        return nsys_gpu_trace.read(text, path)
    if nsys_kern_sum.HEADER.search(text) or nsys_kern_sum.EMPTY.search(text):
        return nsys_kern_sum.read(text, path)
    if llama_bench.recognises(text):
        return llama_bench.read(text, path)
    line = next((line.strip() for line in text.splitlines() if line.strip()), "nothing but blanks")
    raise TraceError(f"{path}: text of no known format (begins {line[:60]!r}); expected {FORMATS}")


def _is_binary(head: bytes) -> bool:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return False
    return b"\x00" in head or sum(byte < 9 or 13 < byte < 32 for byte in head[:4096]) > len(head[:4096]) // 20


def _binary(path: Path) -> TraceError:
    name = path.name.lower()
    if name.endswith(_NCU_REPORT):
        return TraceError(f"{path}: an Nsight Compute report; print it with: ncu --import {path} --csv --page details")
    if name.endswith(_NSYS_REPORT):
        export = f"nsys export --type sqlite --output {path.with_suffix('.sqlite')} {path}"
        return TraceError(f"{path}: an Nsight Systems report, which only nsys can read; export it with: {export}")
    return TraceError(
        f"{path}: binary data of no known format; expected {FORMATS}. If nsys wrote it: nsys export --type sqlite {path}"
    )
