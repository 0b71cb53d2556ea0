"""The boundaries that keep the suite measurable: who may import what, and what asv may take for a benchmark."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SUITE = CHECKOUT / "benchmarks"
FILES = sorted(SUITE.rglob("*.py"))
BENCHMARK_NAME = re.compile(r"^((Time|Track|Mem|PeakMem|Timeraw)[A-Z_]|(time|track|mem|peakmem|timeraw)_)")
HEAVY = {"cupy", "cupti", "torch", "transformers", "pynvml", "llama_cpp", "xllamacpp"}


def imports_of(path: Path, *, top_level_only: bool) -> set[str]:
    """First parts of the absolute names that a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if not top_level_only else iter(tree.body)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SUITE)))
def test_only_engine_imports_minfer_and_nothing_heavy_is_imported_early(path):
    everywhere = imports_of(path, top_level_only=False)
    if path != SUITE / "engine.py":
        assert "minfer" not in everywhere
    assert not imports_of(path, top_level_only=True) & HEAVY
    if "attribution" in path.parts:
        assert not everywhere & HEAVY


def test_siblings_of_the_suite_are_imported_by_nobody():
    # asv makes only benchmarks/ importable; a sibling package would be the measured commit's, or missing.
    for path in FILES:
        assert not imports_of(path, top_level_only=False) & {"dashboard", "tests", "tools", "benchmarks"}, path


def test_asv_discovers_benchmarks_alone_and_each_states_version_unit_and_direction(tmp_path):
    script = "import sys; from asv_runner.discovery import _discover; _discover(sys.argv[1:])"
    target = tmp_path / "found.json"
    subprocess.run([sys.executable, "-c", script, str(SUITE), str(target)], check=True, cwd=tmp_path)
    found = json.loads(target.read_text())
    names = {entry["name"] for entry in found}
    assert "prefill.Wall.track_seconds_per_token" in names
    for entry in found:
        assert BENCHMARK_NAME.match(entry["name"].split(".")[-1])
        # Helpers must not look like benchmarks: those of the suite stand in its top folder.
        assert entry["name"].count(".") <= 2, entry["name"]
        assert re.fullmatch(r"\d+", str(entry["version"])), f"{entry['name']}: set version by hand"
        if entry["type"] == "track":
            assert entry["unit"] not in ("", "unit"), entry["name"]
            assert entry["direction"] == "lower", entry["name"]
