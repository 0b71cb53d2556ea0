"""A history at the size that the dashboard is built for: asv results of 10,000 commits, 200 series, two machines."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from tools.noise import RealNoise
from tools.small_history import commit_hash

MACHINES = ("h200", "epyc-2core")
_COLUMNS = [
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
]
_COLUMNS += ["stats_number", "stats_repeat"]
_CLASSES = (
    "q4_K GEMM",
    "q6_K GEMM",
    "attention",
    "activation quantise",
    "norm",
    "rope",
    "elementwise",
    "kv write",
    "embedding",
    "logits",
)
_LENGTHS = ("128", "512", "1024", "2048", "3325")
_PER_CLASS = len(_CLASSES) * len(_LENGTHS)


def write(folder: Path, commits: int, series: int, seed: int, repository: bool = False) -> None:
    """Write ``folder/<machine>/<commit>-minfer.json``; each series has real noise and a few real steps.

    ``repository`` makes the folder's parent a git repository of just these commits: asv publish leaves out any other.
    """
    names = _benchmarks(series)
    (folder).mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.json").write_text(json.dumps(_benchmarks_json(names)), encoding="utf-8")
    start = datetime(2022, 1, 1, tzinfo=UTC)
    times = [start + timedelta(hours=4 * index) for index in range(commits)]
    subjects = [f"Change {index} of a made-up history" for index in range(commits)]
    if repository:
        hashes = _make_repository(folder.parent, subjects, times)
    else:
        hashes = [commit_hash(index, seed) for index in range(commits)]
    lines = (
        json.dumps({"commit": commit, "time": when.isoformat(), "subject": subject, "body": ""})
        for commit, when, subject in zip(hashes, times, subjects, strict=True)
    )
    (folder / "commits.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for place, machine in enumerate(MACHINES):
        values = _values(commits, sum(len(parameters) for _, parameters in names), seed + place)
        (folder / machine).mkdir()
        about = {
            "machine": machine,
            "version": 1,
            "os": "Linux",
            "arch": "x86_64",
            "cpu": "made up",
            "num_cpu": "2",
            "ram": "24 GiB",
        }
        (folder / machine / "machine.json").write_text(json.dumps(about), encoding="utf-8")
        for index, commit in enumerate(hashes):
            text = json.dumps(_result(commit, times[index], machine, names, values[index]), separators=(",", ":"))
            (folder / machine / f"{commit}-minfer.json").write_text(text, encoding="utf-8")


def _make_repository(folder: Path, subjects: list[str], times: list[datetime]) -> list[str]:
    """Empty commits on one branch, by git fast-import; returns their hashes, oldest first."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    stream = "".join(
        f"commit refs/heads/main\ncommitter made up <made@up.invalid> {int(when.timestamp())} +0000\n"
        f"data {len(subject.encode())}\n{subject}\n"
        for subject, when in zip(subjects, times, strict=True)
    )
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "fast-import", "--quiet"], input=stream.encode(), check=True)
    listed = subprocess.run([*git, "rev-list", "--reverse", "main"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def _benchmarks(series: int) -> list[tuple[str, list[tuple[str, str]]]]:
    """Benchmarks of ``series`` values altogether: one for each metric, parameterised by class and nt."""
    combinations = [(name, nt) for name in _CLASSES for nt in _LENGTHS]
    out = []
    for start in range(0, series, _PER_CLASS):
        name = f"prefill.Classes.track_metric_{start // _PER_CLASS}"
        out.append((name, combinations[: min(_PER_CLASS, series - start)]))
    return out


def _values(commits: int, series: int, seed: int) -> np.ndarray:
    """[commits, series]: a level for each series, steps of -30 to +12 % at random commits, real noise."""
    noise, rng = RealNoise(seed), np.random.default_rng(seed)
    out = np.empty((commits, series))
    for column in range(series):
        level = np.full(commits, 10.0 ** rng.uniform(-1, 3))
        for at in rng.integers(0, commits, size=5):
            level[at:] *= 1 + rng.uniform(-0.30, 0.12)
        out[:, column] = level * noise.factors(commits)
    return out


def _result(
    commit: str, when: datetime, machine: str, names: list[tuple[str, list[tuple[str, str]]]], values: np.ndarray
) -> dict[str, object]:
    stamp = int(when.timestamp() * 1000)
    results, start = {}, 0
    for name, combinations in names:
        row = [float(f"{value:.6g}") for value in values[start : start + len(combinations)]]
        start += len(combinations)
        low, high = [float(f"{v * 0.995:.6g}") for v in row], [float(f"{v * 1.006:.6g}") for v in row]
        classes = list(dict.fromkeys(repr(item[0]) for item in combinations))
        params = [classes, [repr(nt) for nt in _LENGTHS]]
        padded = row + [None] * (len(classes) * len(_LENGTHS) - len(row))
        results[name] = [padded, params, "1", stamp, 1.0, low, high, low, high, [1] * len(row), [9] * len(row)]
    about = {"params": {"machine": machine, "python": "3.11"}, "python": "3.11", "requirements": {}, "env_vars": {}}
    about |= {"commit_hash": commit, "env_name": "minfer", "date": stamp, "durations": {}, "version": 2}
    return about | {"result_columns": _COLUMNS, "results": results}


def _benchmarks_json(names: list[tuple[str, list[tuple[str, str]]]]) -> dict[str, object]:
    out: dict[str, object] = {"version": 2}
    for name, combinations in names:
        classes = list(dict.fromkeys(repr(item[0]) for item in combinations))
        out[name] = {
            "name": name, "code": "", "type": "track", "unit": "ms", "direction": "lower", "version": "1", "timeout": 60,
            "param_names": ["kernel_class", "nt"], "params": [classes, [repr(nt) for nt in _LENGTHS]], "pretty_name": name,
        }  # fmt: skip
    return out
