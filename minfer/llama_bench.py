"""llama-bench's output: the same fields in the same order and formats, so that scripts written for it read ours.

Fields and formats: tools/llama-bench/llama-bench.cpp of llama.cpp 0c1e570. Fields that have no counterpart here hold what
llama-bench holds when the option is not used.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from .tables import binary_size

Value = str | int | float | bool


@dataclass(frozen=True)
class Row:
    """One test: ``n_prompt`` tokens prefilled, or ``n_gen`` tokens generated."""

    build_commit: str
    build_number: int
    cpu_info: str
    gpu_info: str
    backends: str
    model_filename: str
    model_type: str
    model_size: int
    model_n_params: int
    n_batch: int
    n_ubatch: int
    n_threads: int
    cpu_mask: str
    cpu_strict: bool
    poll: int
    type_k: str
    type_v: str
    n_gpu_layers: int
    n_cpu_moe: int
    split_mode: str
    main_gpu: int
    no_kv_offload: bool
    flash_attn: int
    devices: str
    tensor_split: str
    tensor_buft_overrides: str
    load_mode: str
    lazy_mode: str
    embeddings: bool
    no_op_offload: int
    no_host: bool
    repack: bool
    fit_target: int
    fit_min_ctx: int
    n_prompt: int
    n_gen: int
    n_depth: int
    test_time: str
    """UTC, as 2026-11-29T19:01:45Z."""
    avg_ns: int
    stddev_ns: int
    avg_ts: float
    """Tokens a second."""
    stddev_ts: float
    samples_ns: tuple[int, ...]
    """In JSON only, as in llama-bench."""
    samples_ts: tuple[float, ...]

    @property
    def test(self) -> str:
        """"pp512" or "tg32", as the Markdown table names it."""
        return f"pp{self.n_prompt}" if self.n_prompt else f"tg{self.n_gen}"


_COLUMNS = tuple(field.name for field in fields(Row) if not field.name.startswith("samples_"))
_LEFT = (0, 3)
"""Columns of the Markdown table that are aligned to the left: model and backend."""
_SQL_TYPES = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL"}


def summary(samples_ns: Sequence[int], tokens: int) -> dict[str, Any]:
    """The measured fields of a row: means and sample deviations of times and of rates."""
    rates = [tokens * 1e9 / sample for sample in samples_ns]
    several = len(samples_ns) > 1
    return {
        "avg_ns": round(statistics.fmean(samples_ns)),
        "stddev_ns": round(statistics.stdev(samples_ns)) if several else 0,
        "avg_ts": round(statistics.fmean(rates), 6),
        "stddev_ts": round(statistics.stdev(rates), 6) if several else 0.0,
        "samples_ns": tuple(samples_ns),
        "samples_ts": tuple(round(rate, 6) for rate in rates),
    }


def rendered(rows: Sequence[Row], form: str) -> str:
    """``rows`` as "json", "jsonl", "csv", "md" or "sql"."""
    return {"json": _json, "jsonl": _jsonl, "csv": _csv, "md": _markdown, "sql": _sql}[form](rows)


def _json(rows: Sequence[Row]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=2) + "\n"


def _jsonl(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(asdict(row)) + "\n" for row in rows)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _csv(rows: Sequence[Row]) -> str:
    lines = [",".join(_COLUMNS)]
    for row in rows:
        values = (_text(getattr(row, column)).replace('"', '""') for column in _COLUMNS)
        lines.append(",".join(f'"{value}"' for value in values))
    return "\n".join(lines) + "\n"


def _sql(rows: Sequence[Row]) -> str:
    types = {field.name: _SQL_TYPES[str(field.type)] for field in fields(Row) if field.name in _COLUMNS}
    table = ",\n".join(f"  {column} {types[column]}" for column in _COLUMNS)
    out = [f"CREATE TABLE IF NOT EXISTS llama_bench (\n{table}\n);\n"]
    for row in rows:
        values = ", ".join("'" + _text(getattr(row, column)).replace("'", "''") + "'" for column in _COLUMNS)
        out.append(f"INSERT INTO llama_bench ({', '.join(_COLUMNS)}) VALUES ({values});")
    return "\n".join(out) + "\n"


def _markdown(rows: Sequence[Row]) -> str:
    gpu = any(row.n_gpu_layers for row in rows)
    titles = ("model", "size", "params", "backend", "ngl" if gpu else "threads", "n_ubatch", "test", "t/s")
    widths = (30, 10, 10, 10, 7, 8, 13, 20)
    ruler = ["-" * width if i in _LEFT else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = [_line(titles, widths), _line(ruler, widths)]
    for row in rows:
        cells = (
            row.model_type, binary_size(row.model_size), _decimal(row.model_n_params), row.backends,
            str(row.n_gpu_layers if gpu else row.n_threads), str(row.n_ubatch), row.test,
            f"{row.avg_ts:.2f} ± {row.stddev_ts:.2f}",
        )  # fmt: skip
        lines.append(_line(cells, widths))
    build = f"\nbuild: {rows[0].build_commit} ({rows[0].build_number})\n" if rows else ""
    return "\n".join(lines) + "\n" + build


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (c.ljust(w) if i in _LEFT else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
    return f"| {' | '.join(padded)} |"


def _decimal(count: int) -> str:
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"
