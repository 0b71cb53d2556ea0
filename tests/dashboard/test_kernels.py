"""Kernels: what the compiler made of them stands beside what they cost, on the real results."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.attribution.record_files import read_records
from dashboard.kernels import cost_by_shape
from tests.dashboard.conftest import tables
from tests.dashboard.test_screens import words

REAL = Path(__file__).resolve().parents[2] / "results"
COMMITS = {
    "ae4643e0e8300b3a8e1c05c0c3c24dde432050ac": "minfer_attention_plain",
    "4180a8a11fb482b294c73a39a6e523066596c579": "minfer_attention_fa_128",
}


def stored(commit: str, kernel: str, target: str) -> dict:
    lines = [json.loads(line) for line in (REAL / "static" / f"{commit}.jsonl").read_text().splitlines()[1:]]
    return next(line for line in lines if (line["kernel"], line["target"]) == (kernel, target))


@pytest.mark.parametrize("commit", COMMITS)
def test_registers_spills_and_matrix_share_stand_beside_the_cost(open_screen, commit):
    test = open_screen("kernels", REAL, machine="h200", nt="3325", **{"class": "attention"})
    table = next(frame for frame in tables(test) if "subject" in frame)
    row = table[table["commit"] == commit[:8]].iloc[0]
    facts = stored(commit, COMMITS[commit], "sm_90a")  # the target of an H200
    assert row["kernel"] == facts["kernel"]
    assert (row["registers"], row["spills (bytes)"]) == (facts["registers"], facts["spill_bytes"])
    loop = facts["loop_per_matrix"]
    if loop:
        assert row["matrix share of the main loop (%)"] == pytest.approx(100 / loop)
    record = read_records(REAL / "h200" / "records" / f"{commit}.jsonl")[-1]
    wall = next(w for w in record.walls if w.engine == "minfer" and w.nt == 3325)
    attention = next(item for item in wall.decomposition.classes if item.name == "attention")
    assert row["cost"] == pytest.approx(attention.ns / 1e3 / (attention.macs / 1e9))
    assert list(table["commit"]).index("4180a8a1") < list(table["commit"]).index("ae4643e0")  # newest first


@pytest.fixture
def two_commits(tmp_path):
    """Two of the real commits alone, so that later results change nothing here."""
    folder = tmp_path / "results"
    for kind, ending in (("h200/records", "jsonl"), ("static", "jsonl")):
        (folder / kind).mkdir(parents=True)
        for commit in COMMITS:
            shutil.copy(REAL / kind / f"{commit}.{ending}", folder / kind)
    return folder


def test_another_target_has_figures_of_its_own(open_screen, two_commits):
    test = open_screen("kernels", two_commits, machine="h200", **{"class": "rope", "compiled-for": "sm_80"})
    table = next(frame for frame in tables(test) if "resident warps" in frame and "subject" not in frame)
    assert table["kernel"].iloc[0] == "minfer_rope"
    facts = stored("4180a8a11fb482b294c73a39a6e523066596c579", "minfer_rope", "sm_80")
    assert table["resident warps"].iloc[0] == facts["warps_resident"]


def test_a_class_that_a_library_does_has_no_figures_of_a_small_kernel_of_ours(open_screen, two_commits):
    test = open_screen("kernels", two_commits, machine="h200", nt="3325", **{"class": "q4_K GEMM"})
    table = next(frame for frame in tables(test) if "subject" in frame)
    row = table[table["commit"] == "4180a8a1"].iloc[0]
    assert row["kernel"].startswith("nvjet_")
    assert pd.isna(row["registers"])
    every = next(frame for frame in tables(test) if "resident warps" in frame and "subject" not in frame)
    assert every.set_index("kernel")["registers"].notna()["minfer_mmv_q4_K"]


def test_a_commit_without_figures_says_how_to_get_them_and_a_damaged_file_says_so(open_screen, history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(history, folder)
    test = open_screen("kernels", folder)
    assert "static --store measured" in words(test)
    commit = json.loads((folder / "commits.jsonl").read_text().splitlines()[-1])["commit"]
    (folder / "static").mkdir()
    (folder / "static" / f"{commit}.jsonl").write_text("{}\n")
    test = open_screen("kernels", folder)
    assert "cannot be read" in test.error[0].value


def test_a_cpu_has_no_compiled_kernels_to_show(open_screen):
    test = open_screen("kernels", REAL, machine="epyc-2core")
    assert "compiler" not in " ".join(item.value for item in test.subheader)
    assert any("Cost over shapes" in item.value for item in test.subheader)


def test_shapes_are_of_each_engines_best_wall_only():
    commit = "4180a8a11fb482b294c73a39a6e523066596c579"
    record = read_records(REAL / "h200" / "records" / f"{commit}.jsonl")[-1]
    shapes = cost_by_shape(record, "attention")
    ours = shapes[(shapes["engine"] == "minfer") & (shapes["nt"] == 3325)]
    wall = next(w for w in record.walls if w.engine == "minfer" and w.nt == 3325)  # without the gates mmq and bt
    attention = next(item for item in wall.decomposition.classes if item.name == "attention")
    assert ours["class_ms"].sum() == pytest.approx(attention.ns / 1e6, rel=1e-3)
