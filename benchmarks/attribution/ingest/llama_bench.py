"""llama-bench's results: JSON, JSON lines, CSV, Markdown or SQL, read by header name.

Fields come and go between versions, so only what is named is read. Source of the names: tools/llama-bench in
https://github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..events import BenchResult, Trace, TraceError
from .tables import find_tables

FORMAT = "llama-bench"
SQL_INSERT = re.compile(r"^INSERT INTO \w+ \((?P<names>[^)]*)\) VALUES \((?P<values>.*)\);\s*$", re.M | re.I)
CSV_HEADER = re.compile(r"^(?=.*\bn_prompt\b)(?=.*\bn_gen\b)(?=.*\bavg_ts\b)[\w\",]+\r?$", re.M)
MARKDOWN_HEADER = re.compile(r"^\|(?=.*\bmodel\b)(?=.*\btest\b)(?=.*\bt/s\b).*\|\s*$", re.M)
_TEST = re.compile(r"(?:pp(?P<pp>\d+))?\+?(?:tg(?P<tg>\d+))?(?:\s*@\s*d(?P<depth>\d+))?")
_BUILD = re.compile(r"^build:\s*([0-9a-f]+)", re.M)


def recognises(text: str) -> str | None:
    """The dialect of a llama-bench report, or None where the text is none."""
    head = text[:4096].lstrip()
    if head.startswith("[") and '"n_prompt"' in head and '"avg_ns"' in text:
        return "json"
    if head.startswith("{") and '"n_prompt"' in head and '"traceEvents"' not in head:
        return "jsonl"
    if CSV_HEADER.search(text[:65536]):
        return "csv"
    if SQL_INSERT.search(text) and "n_prompt" in text:
        return "sql"
    return "markdown" if MARKDOWN_HEADER.search(text) else None


def read(text: str, path: Path) -> Trace:
    """All results of one report. Raises TraceError."""
    results = read_results(text, path)
    if not results:
        raise TraceError(f"{path}: a llama-bench report without a result; run llama-bench to its end")
    dialect = recognises(text)
    return Trace(
        source_format=f"{FORMAT} {dialect}",
        bench_results=results,
        notes=("speeds only, no timeline: kernels, busy, gaps and classes are unknown",),
    )


def read_results(text: str, path: Path) -> tuple[BenchResult, ...]:
    """The rows of a report in any dialect, in its order. Raises TraceError."""
    dialect = recognises(text)
    if dialect == "markdown":
        return _markdown(text, path)
    rows: list[Mapping[str, Any]] = []
    try:
        if dialect == "json":
            rows = json.loads(text)
        elif dialect == "jsonl":
            rows = [json.loads(line) for line in text.splitlines() if line.strip().startswith("{")]
        elif dialect == "csv":
            match = CSV_HEADER.search(text)
            rows = list(csv.DictReader(io.StringIO(text[match.start() if match else 0 :])))
        elif dialect == "sql":
            rows = [_sql_row(match) for match in SQL_INSERT.finditer(text)]
        else:
            raise TraceError(f"{path}: not a llama-bench report; expected JSON, JSONL, CSV, Markdown or SQL of llama-bench")
    except json.JSONDecodeError as error:
        raise TraceError(
            f"{path}: the llama-bench JSON ends or breaks at line {error.lineno}; run llama-bench again"
        ) from error
    return tuple(_result(row, f"{path}: result {number}") for number, row in enumerate(rows, 1))


def _sql_row(match: re.Match[str]) -> dict[str, str]:
    names = [name.strip() for name in match["names"].split(",")]
    values = next(csv.reader([match["values"]], quotechar="'", skipinitialspace=True))
    return dict(zip(names, values, strict=False))


def _result(row: Mapping[str, Any], where: str) -> BenchResult:
    nt, generated = _integer(row, "n_prompt", where), _integer(row, "n_gen", where)
    speed = _real(row, "avg_ts", where)
    if nt is None or generated is None or speed is None:
        raise TraceError(f"{where}: no n_prompt, n_gen or avg_ts; expected a llama-bench result")
    flash = row.get("flash_attn")
    return BenchResult(
        nt=nt,
        generated=generated,
        depth=_integer(row, "n_depth", where),
        ubatch=_integer(row, "n_ubatch", where),
        batch=_integer(row, "n_batch", where),
        tokens_per_second=speed,
        mean_ns=_integer(row, "avg_ns", where),
        stddev_ns=_integer(row, "stddev_ns", where),
        samples_ns=_samples(row.get("samples_ns"), where),
        model=_text(row, "model_filename") or _text(row, "model_type"),
        backend=_text(row, "backends") or _text(row, "backend"),
        gpu=_text(row, "gpu_info"),
        commit=_text(row, "build_commit"),
        test_time=_text(row, "test_time"),
        flash_attention=None if flash in (None, "") else str(flash).lower() in ("1", "true", "on"),
    )


def _markdown(text: str, path: Path) -> tuple[BenchResult, ...]:
    build = _BUILD.search(text)
    results: list[BenchResult] = []
    for table in find_tables(text, MARKDOWN_HEADER, path):
        absent = [name for name in ("model", "test", "t/s") if name not in table.header]
        if absent:
            raise TraceError(f"{table.where}: no column {absent[0]!r}; expected llama-bench's Markdown")
        rows = [dict(zip(table.header, cells, strict=True)) for cells in zip(*map(table.strings, table.header), strict=True)]
        for number, row in enumerate(rows, 1):
            where = f"{table.where}: row {number}"
            test = _TEST.fullmatch(row["test"])
            if test is None or not (test["pp"] or test["tg"]):
                raise TraceError(f"{where}: test {row['test']!r}; expected the form pp512, tg128 or pp512+tg128")
            speed = row["t/s"].split("±")[0]
            value = _real({"t/s": speed}, "t/s", where)
            if value is None:
                raise TraceError(f"{where}: no speed under t/s")
            results.append(
                BenchResult(
                    nt=int(test["pp"] or 0),
                    generated=int(test["tg"] or 0),
                    depth=int(test["depth"]) if test["depth"] else None,
                    ubatch=_integer(row, "n_ubatch", where),
                    batch=_integer(row, "n_batch", where),
                    tokens_per_second=value,
                    model=_text(row, "model"),
                    backend=_text(row, "backend"),
                    commit=build[1] if build else None,
                    flash_attention=None if not row.get("fa") else row["fa"] in ("1", "true", "on"),
                )
            )
    return tuple(results)


def _samples(values: Any, where: str) -> tuple[int, ...]:
    numbers = [_real({"samples_ns": value}, "samples_ns", where) for value in (values if isinstance(values, list) else [])]
    return tuple(int(number) for number in numbers if number is not None)


def _integer(row: Mapping[str, Any], name: str, where: str) -> int | None:
    value = _real(row, name, where)
    return None if value is None else int(value)


def _real(row: Mapping[str, Any], name: str, where: str) -> float | None:
    value = row.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(str(value).replace(",", ""))
    except ValueError as error:
        raise TraceError(f"{where}: {name} is {str(value)[:40]!r}; expected a number") from error
    if not math.isfinite(number) or number < 0:
        raise TraceError(f"{where}: {name} is {number}; expected a finite number of at least 0")
    return number


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    return str(value) if value not in (None, "") else None
