"""What profilers and llama-bench print for people, as text with values that a reader can check by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from .builders import COPIES, KERNELS

KERN_SUM_ROWS = (
    (1_234_567, 22, "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_32x6_tn_align8>(P)"),
    (65_433, 3, "rope_neox(float, a | b)"),
)
KERN_SUM_HEADER = ("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Name")


def kern_sum_cells() -> list[tuple[str, ...]]:
    return [("95.0", f"{ns:,}", str(count), f"{ns / count:,.1f}", name) for ns, count, name in KERN_SUM_ROWS]


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if "," in cell or '"' in cell else cell

    return "\n".join(",".join(quoted(cell) for cell in row) for row in [header, *rows]) + "\n"


def columns_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """What ``nsys stats`` prints to a terminal: cells under a line of dashes."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in [header, *rows]]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(" " + "  ".join(line) for line in lines) + "\n\n"


def boxed_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """``nsys stats --format table``."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in [header, *rows]]
    return "\n".join([rule, lines[0], rule.replace("-", "="), *lines[1:], rule]) + "\n"


GPU_TRACE_HEADER = (
    "Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)",
    "DymSMem (MB)", "Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx", "GreenCtx", "Strm", "Name",
)  # fmt: skip


def gpu_trace_rows(unit_ns: int = 1) -> list[tuple[str, ...]]:
    """KERNELS and COPIES as rows; ``unit_ns`` is the unit of the time columns."""

    def time(ns: int) -> str:
        return str(ns) if unit_ns == 1 else f"{ns / unit_ns:.9f}"

    rows: list[tuple[str, ...]] = []
    for index, (start, end, device, stream, correlation, name) in enumerate(KERNELS):
        shape = (str(10 + index), "2", "1", "128", "1", "1", "64", "0.000", "0.000")
        place = ("", "", "", "", f"NVIDIA H200 ({device})", "1", "", str(stream), name)
        rows.append((time(start), time(end - start), str(correlation), *shape, *place))
    for start, end, device, stream, correlation, size, kind in COPIES:
        word = "Host-to-Device" if kind == 1 else "Device-to-Host"
        place = (f"{size / 1e6:.6f}", "10.0", "Pageable", "Device", f"NVIDIA H200 ({device})", "1", "", str(stream))
        rows.append((time(start), time(end - start), str(correlation), *[""] * 9, *place, f"[CUDA memcpy {word}]"))
    return rows


NCU_HEADER = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device",
    "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value",
)  # fmt: skip


def ncu_text(metrics: Sequence[tuple[int, str, str, str]], name: str = "gemm(float *, int)") -> str:
    """Rows (kernel id, metric, unit, value) in ncu's long form, under its preamble."""
    rows = [
        (str(key), "17", "python", "host", name, "1", "7", "(32, 4, 1)", "(224, 1, 1)", "0", "9.0", "S", metric, unit, value)
        for key, metric, unit, value in metrics
    ]
    quoted = "\n".join(",".join(f'"{cell}"' for cell in row) for row in [NCU_HEADER, *rows])
    return f"==PROF== Connected to process 17\nhello from the program\n{quoted}\n"


LLAMA_BENCH = (
    {
        "build_commit": "0c1e570", "backends": "CUDA", "gpu_info": "NVIDIA H200", "model_filename": "m.gguf",
        "n_batch": 2048,
        "n_ubatch": 512, "flash_attn": True, "n_prompt": 512, "n_gen": 0, "n_depth": 0, "test_time": "2026-01-01T00:00:00Z",
        "avg_ns": 51_000_000, "stddev_ns": 1_000_000, "avg_ts": 10039.2, "stddev_ts": 200.0,
        "samples_ns": [50_000_000, 51_000_000, 52_000_000], "samples_ts": [10240.0, 10039.2, 9846.2],
    },
    {
        "build_commit": "0c1e570", "backends": "CUDA", "gpu_info": "NVIDIA H200", "model_filename": "m.gguf",
        "n_batch": 2048,
        "n_ubatch": 512, "flash_attn": True, "n_prompt": 0, "n_gen": 128, "n_depth": 0, "test_time": "2026-01-01T00:01:00Z",
        "avg_ns": 460_000_000, "stddev_ns": 2_000_000, "avg_ts": 278.3, "stddev_ts": 1.2,
        "samples_ns": [460_000_000], "samples_ts": [278.3],
    },
)  # fmt: skip


def llama_bench_text(dialect: str) -> str:
    scalars = [{key: value for key, value in row.items() if not isinstance(value, list)} for row in LLAMA_BENCH]
    if dialect == "json":
        return json.dumps(LLAMA_BENCH, indent=2)
    if dialect == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in LLAMA_BENCH)
    if dialect == "csv":
        body = [",".join(f'"{int(v) if isinstance(v, bool) else v}"' for v in row.values()) for row in scalars]
        return ",".join(scalars[0]) + "\n" + "\n".join(body) + "\n"
    if dialect == "sql":
        create = "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT\n);\n\n"
        values = [", ".join(f"'{int(v) if isinstance(v, bool) else v}'" for v in row.values()) for row in scalars]
        return create + "".join(f"INSERT INTO llama_bench ({', '.join(scalars[0])}) VALUES ({line});\n" for line in values)
    return (
        "| model          |     size | backend | ngl | n_ubatch | fa |  test |             t/s |\n"
        "| -------------- | -------: | ------- | --: | -------: | -: | ----: | --------------: |\n"
        "| qwen2 7B Q4_K  | 4.36 GiB | CUDA    |  99 |      512 |  1 | pp512 | 10039.20 ± 200.00 |\n"
        "| qwen2 7B Q4_K  | 4.36 GiB | CUDA    |  99 |      512 |  1 | tg128 |    278.30 ± 1.20 |\n\n"
        "build: 0c1e570 (1)\n"
    )
