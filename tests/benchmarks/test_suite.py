"""The suite end to end, as a user runs it: asv over a real history of a toy engine.

This is also the contract test on asv: that the checkout environment measures each commit's own package, that samples handed
back by a benchmark are stored with their statistics, that old commits are skipped and broken ones named.
"""

import json
import os
import subprocess
import sys
from datetime import datetime

import pytest

from benchmarks.attribution.record_files import read_records
from tests.benchmarks.toy_engine import ToyRepository, engine_source

MACHINE = "toy-machine"
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def asv(repository, *arguments, check=True, **environment):
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("ASV", "MINFER", "PYTHONPATH"))}
    variables |= {
        "MINFER_MODEL": str(repository.folder.parent / "toy.gguf"), "MINFER_MACHINE": MACHINE, "MINFER_SAMPLES": "3",
        "MINFER_NTS": "128", "MINFER_BACKEND": "numpy", "HOME": str(repository.folder.parent), **environment,
    }  # fmt: skip
    command = [sys.executable, "-m", "asv", *arguments]
    done = subprocess.run(command, cwd=repository.folder, env=variables, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Four commits: none, good, slower, broken; measured in one asv run."""
    folder = tmp_path_factory.mktemp("history")
    (folder / "toy.gguf").write_bytes(b"GGUF toy weights")
    repository = ToyRepository(folder / "repository")
    commits = {
        "none": repository.commit("before the engine", None),
        "good": repository.commit("an engine", engine_source()),
        "slower": repository.commit("a slower product", engine_source("slower", gemm_s=0.02)),
        "broken": repository.commit("a broken engine", engine_source(on_load='raise ValueError("no such tensor: x")')),
    }
    options = ["--machine", MACHINE, "--bench", "prefill.Wall", "--show-stderr"]
    run = asv(repository, "run", "ALL", *options, check=False, MINFER_BESIDE="toy=0;colour=red")
    return repository, commits, run


def results_of(repository, commit):
    files = list((repository.folder / "results" / MACHINE).glob(f"{commit[:8]}-*.json"))
    assert len(files) == 1, files
    return json.loads(files[0].read_text())


@pytest.mark.slow
def test_each_commit_is_measured_with_its_own_engine(measured):
    repository, commits, run = measured
    folder = repository.folder / "results" / MACHINE / "records"
    records = {name: folder / f"{commit}.jsonl" for name, commit in commits.items()}
    assert {name for name, path in records.items() if path.exists()} == {"good", "slower"}, run.stdout + run.stderr
    walls = {}
    for name in ("good", "slower"):
        (record,) = read_records(records[name])
        assert record.commit == commits[name]
        assert record.machine.name == MACHINE
        wall, other_gates = record.walls
        assert other_gates.gates == {"toy": "0"}
        assert "not measured beside: no gate colour" in record.notes
        part = wall.decomposition
        walls[name] = {found.name: found.ns for found in part.classes}
        assert sum(walls[name].values()) + part.copy_ns + sum(part.gap_ns.values()) == part.wall_ns
        assert len(wall.samples_ns) >= 3
        assert wall.gates == {"toy": True}
        assert any(note.startswith("no peer: ") for note in record.notes)
        stages = record.window.stages_ns
        assert {"opening the engine", "nt 128: sampling", "nt 128: tracing"} <= set(stages)
        assert all(ns >= 0 for ns in stages.values())
        lasted = datetime.fromisoformat(record.window.ended) - datetime.fromisoformat(record.window.started)
        assert sum(stages.values()) <= (lasted.total_seconds() + 0.01) * 1e9
    assert walls["good"]["q4_K GEMM"] >= 2_000_000
    assert walls["slower"]["q4_K GEMM"] >= 20_000_000


@pytest.mark.slow
def test_samples_are_stored_with_statistics_and_the_model_in_the_environments_name(measured):
    repository, commits, _ = measured
    stored = results_of(repository, commits["good"])
    assert stored["env_name"].endswith("-modeltoy")
    columns = stored["result_columns"]
    row = dict(zip(columns, stored["results"]["prefill.Wall.track_seconds_per_token"], strict=False))
    values = dict(zip(row["params"][0], row["result"], strict=True))
    assert values["128"] > 0.003 / 128
    assert values["3325"] is None or values["3325"] != values["3325"]
    lower, upper = row["stats_q_25"][0], row["stats_q_75"][0]
    assert lower <= values["128"] <= upper


@pytest.mark.slow
def test_asv_knows_the_machine_without_being_asked(measured):
    repository, _, _ = measured
    stored = json.loads((repository.folder / "results" / MACHINE / "machine.json").read_text())
    assert stored["machine"] == MACHINE
    assert stored["cpu"]
    assert int(stored["ram"]) > 1 << 28


@pytest.mark.slow
def test_units_and_directions_reach_asvs_list_of_benchmarks(measured):
    repository, _, _ = measured
    listed = json.loads((repository.folder / "results" / "benchmarks.json").read_text())
    entry = listed["prefill.Wall.track_seconds_per_token"]
    assert (entry["unit"], entry["direction"], entry["version"]) == ("s/token", "lower", "1")


@pytest.mark.slow
def test_a_commit_without_the_engine_is_skipped_and_a_broken_one_named(measured):
    repository, commits, run = measured
    assert results_of(repository, commits["none"])["results"]["prefill.Wall.track_gap_ms"][0] != []
    assert "no such tensor: x" in run.stdout + run.stderr
    row = results_of(repository, commits["none"])["results"]["prefill.Wall.track_seconds_per_token"]
    assert all(value is None or value != value for value in row[0] or [None])


@pytest.mark.slow
def test_existing_commits_are_not_measured_again(measured):
    repository, commits, _ = measured
    path = repository.folder / "results" / MACHINE / "records" / f"{commits['good']}.jsonl"
    before = path.read_bytes()
    asv(repository, "run", "ALL", "--machine", MACHINE, "--skip-existing-commits", "--bench", "prefill.Wall")
    assert path.read_bytes() == before


@pytest.mark.slow
def test_asvs_own_commands_read_the_results(measured):
    repository, commits, _ = measured
    compared = asv(repository, "compare", commits["good"], commits["slower"], "--machine", MACHINE)
    assert "prefill.Wall.track_seconds_per_token(128)" in compared.stdout
    asv(repository, "publish")
    assert (repository.folder / "html" / "index.html").is_file()


@pytest.mark.slow
def test_a_dry_run_keeps_no_record(measured):
    repository, commits, _ = measured
    before = sorted((repository.folder / "results" / MACHINE / "records").iterdir())
    asv(repository, "run", f"{commits['good']}^!", "--machine", MACHINE, "--dry-run", "--bench", "prefill.Wall.track_gap_ms")
    assert sorted((repository.folder / "results" / MACHINE / "records").iterdir()) == before


@pytest.mark.slow
def test_another_model_at_the_same_commit_is_measured_and_the_first_kept(measured):
    repository, commits, _ = measured
    folder = repository.folder.parent
    (folder / "other.gguf").write_bytes(b"GGUF other weights")
    (folder / "only").write_text(f"{commits['good']}\n")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("ASV", "MINFER", "PYTHONPATH"))}
    variables |= {"HOME": str(folder), "MINFER_SAMPLES": "3", "MINFER_NTS": "128", "MINFER_BACKEND": "numpy"}
    command = [sys.executable, "-m", "benchmarks", "bench", "--machine", MACHINE, "--only", str(folder / "only")]
    command += ["--series", "prefill.Wall.track_gap_ms"]
    record_file = repository.folder / "results" / MACHINE / "records" / f"{commits['good']}.jsonl"
    for model, already in (("other", 0), ("other", 1), ("toy", 1)):
        variables["MINFER_MODEL"] = str(folder / f"{model}.gguf")
        done = subprocess.run(command, cwd=repository.folder, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"bench: {already} of them have results already" in done.stdout
        assert f"\n{model} (toy," in done.stdout
    assert [record.model.name for record in read_records(record_file)] == ["toy", "other"]
    (repository.folder / "results" / MACHINE / f"{commits['good'][:8]}-checkout-py{PYTHON}-modelother.json").unlink()


@pytest.mark.slow
def test_a_new_series_is_filled_from_kept_records_and_measures_nothing(measured):
    repository, commits, _ = measured
    folder = repository.folder / "results" / MACHINE
    before = {path.name: path.read_bytes() for path in (folder / "records").iterdir()}
    (repository.folder.parent / "only").write_text(f"{commits['good']}\n")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("ASV", "MINFER", "PYTHONPATH"))}
    variables |= {"HOME": str(repository.folder.parent), "MINFER_MODEL": "/not/on/this/machine/toy.gguf"}
    command = [sys.executable, "-m", "benchmarks", "bench", "--from-records", "--machine", MACHINE]
    command += ["--only", str(repository.folder.parent / "only"), "--series", "prefill.Classes.track_class_ms"]
    done = subprocess.run(command, cwd=repository.folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name: path.read_bytes() for path in (folder / "records").iterdir()} == before
    row = results_of(repository, commits["good"])["results"]["prefill.Classes.track_class_ms"]
    assert max(value for value in row[0] if value is not None and value == value) >= 2.0
