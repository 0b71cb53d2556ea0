"""The nsys road: a program that stands for nsys, files in its schema, and the child that runs under it."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks import programs
from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.events import OperationLabel
from benchmarks.attribution.replay import with_labels_of
from benchmarks.capture import gpu_instrument, nsys, nsys_child
from benchmarks.capture.cupti import CuptiUnavailableError
from benchmarks.engine import EngineOptions, MeasuredEngine
from benchmarks.peers.llama_cpp import PeerOptions
from tests.benchmarks.attribution.ingest.builders import nsys_sqlite
from tests.minfer.synthetic import Tiny, write_tiny

OPERATIONS = (OperationLabel("attn_norm", "norm"), OperationLabel("attn_q", "q4_K GEMM", macs=7))
RANGES = (
    (100, 1000, 5, "window labelled"), (110, 300, 5, "op 0"), (310, 900, 5, "op 1"),
    (2000, 2600, 5, "window pass 0"), (3000, 3500, 5, "window pass 1"), (10, 90, 5, "somebody else's"),
)  # fmt: skip
CALLS = (
    (120, 130, 5, 1, "cuLaunchKernel"), (320, 330, 5, 2, "cuLaunchKernel"), (340, 350, 5, 3, "cuLaunchKernel"),
    (2010, 2050, 5, 4, "cuGraphLaunch"), (3010, 3050, 5, 5, "cuGraphLaunch"), (20, 30, 5, 9, "cuLaunchKernel"),
)  # fmt: skip
ONE_PASS = ("minfer_rms_norm_f32", "minfer_dequantise_q4_K", "nvjet_hsh")
KERNELS = (
    (40, 60, 0, 7, 9, "minfer_rope"),
    (150, 200, 0, 7, 1, ONE_PASS[0]), (400, 500, 0, 7, 2, ONE_PASS[1]), (500, 800, 0, 7, 3, ONE_PASS[2]),
    (2100, 2150, 0, 7, 4, ONE_PASS[0]), (2150, 2250, 0, 7, 4, ONE_PASS[1]), (2250, 2500, 0, 7, 4, ONE_PASS[2]),
    (3100, 3150, 0, 7, 5, ONE_PASS[0]), (3150, 3250, 0, 7, 5, ONE_PASS[1]), (3250, 3400, 0, 7, 5, ONE_PASS[2]),
)  # fmt: skip
"""Warm-up, the labelled pass launch by launch, and two replays of one graph."""

PROGRAM = """#!{python}
import json, pathlib, shutil, subprocess, sys
pathlib.Path({log!r}).open("a").write(json.dumps(sys.argv[1:]) + chr(10))
out = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
if sys.argv[1] == "profile":
    child = sys.argv[sys.argv.index("-o") + 2:]
    code = subprocess.run(child).returncode if {run_child} else 0
    if {report}:
        out.write_text("report")
    print("Processing events...")
    sys.exit(code or {code})
assert pathlib.Path(sys.argv[-1]).read_text() == "report"
shutil.copy({exported!r}, out)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Installs a program that stands for nsys; its log says how it was called."""

    def install(*, run_child=False, code=0, report=True):
        (tmp_path / "exported.sqlite").unlink(missing_ok=True)
        exported = nsys_sqlite(
            tmp_path / "exported.sqlite", kernels=KERNELS, copies=(), calls=CALLS, ranges=RANGES, gpu_table=None,
            graph_nodes=[None] * 4 + [1, 2, 3] * 2,
        )  # fmt: skip
        path = tmp_path / "nsys"
        log = tmp_path / "calls.jsonl"
        path.write_text(
            PROGRAM.format(
                python=sys.executable, log=str(log), run_child=run_child, code=code, exported=str(exported), report=report
            )
        )
        path.chmod(0o755)
        monkeypatch.setenv("MINFER_NSYS", str(path))
        return log

    return install


@pytest.fixture
def no_cupti(monkeypatch):
    def missing():
        raise CuptiUnavailableError("CUPTI: not here; pip install it")

    monkeypatch.setattr(gpu_instrument, "CuptiInstrument", missing)


def called(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_report_is_made_exported_and_read(program):
    log = program()
    trace = nsys.profile(nsys.nsys_binary(), {"model": "m.gguf", "tokens": [1], "passes": 2})
    profile, export = called(log)
    assert profile[0] == "profile"
    assert {"--trace=cuda,nvtx", "--cuda-graph-trace=node"} <= set(profile)
    assert export[:2] == ["export", "--type=sqlite"]
    assert len(trace.launches) == len(KERNELS)


def test_each_pass_is_its_own_window_with_the_labels_of_the_labelled_one(program):
    program()
    trace = nsys.profile(nsys.nsys_binary(), {})
    labelled = nsys.labelled(trace, OPERATIONS)
    assert labelled.launches.operation.tolist() == [0, 1, 1]
    assert labelled.window_ns == (100, 1000)
    passes = [with_labels_of(labelled, one) for one in nsys.passes(trace)]
    assert [one.window_ns for one in passes] == [(2000, 2600), (3000, 3500)]
    for one, wall, busy in zip(passes, (600, 500), (400, 300), strict=True):
        assert one.launches.operation.tolist() == [0, 1, 1]
        assert one.operations == OPERATIONS
        found = decompose(one)
        assert (found.wall_ns, found.busy_ns) == (wall, busy)
        # The graph's launch began after the device had gone idle, at the window's start.
        assert found.gap_ns["host-late"] == 100


def test_a_label_that_the_engine_does_not_know_is_refused(program):
    program()
    trace = nsys.profile(nsys.nsys_binary(), {})
    with pytest.raises(nsys.NsysError, match="range op 1, expected 1 operations"):
        nsys.labelled(trace, OPERATIONS[:1])


def test_a_report_without_ranges_is_refused(program):
    program()
    trace = nsys.profile(nsys.nsys_binary(), {})
    bare = nsys.cut(trace, (0, 90))
    with pytest.raises(nsys.NsysError, match="no range 'window pass'"):
        nsys.passes(bare)
    with pytest.raises(nsys.NsysError, match="no range 'window labelled'"):
        nsys.labelled(bare, OPERATIONS)


def test_nsys_that_fails_says_its_own_last_words(program):
    program(code=3)
    with pytest.raises(nsys.NsysError, match=r"exit code 3: Processing events\.\.\.; run it by hand: .*nsys profile"):
        nsys.profile(nsys.nsys_binary(), {})


def test_an_nsys_that_makes_no_report_is_found_out_before_it_is_the_instrument(program, no_cupti):
    program(report=False)
    with pytest.raises(nsys.NsysError, match=r"nsys profile: it ended well and made no file \(no QdstrmImporter beside it"):
        nsys.check(nsys.nsys_binary())
    instrument = gpu_instrument.gpu_instrument()
    assert instrument.name == "cuda events"
    assert "CUPTI: not here" in instrument.notes[0] and "install Nsight Systems whole" in instrument.notes[0]


LOADER = "error while loading shared libraries: libdw.so.1: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("importer", "said"),
    [
        (f"#!/bin/sh\necho \"$0: {LOADER}\" >&2; exit 127\n", f"Importer does not start: {LOADER}; install what it lacks"),
        ("#!/bin/sh\necho 2025.3.1\n", "(Processing events...)"),
        ("#!/no/such/loader\n", "QdstrmImporter does not start: "),
    ],
)
def test_a_report_that_is_missing_for_want_of_its_importer_says_what_that_lacks(program, tmp_path, importer, said):
    program(report=False)
    # As Nsight Compute lays them out; its own nsys is often reached by a link.
    tree = tmp_path / "host"
    for folder in ("target-linux-x64", "linux-desktop"):
        (tree / folder).mkdir(parents=True)
    (tmp_path / "nsys").rename(tree / "target-linux-x64" / "nsys")
    (tmp_path / "nsys").symlink_to(tree / "target-linux-x64" / "nsys")
    path = tree / "linux-desktop" / "QdstrmImporter"
    path.write_text(importer)
    path.chmod(0o755)
    with pytest.raises(nsys.NsysError) as refused:
        nsys.check(tmp_path / "nsys")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_program_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFER_NSYS", str(tmp_path / "nothing"))
    with pytest.raises(nsys.NsysError, match=r"MINFER_NSYS=.*no such program"):
        nsys.nsys_binary()


CUPY = """
import pathlib
def RangePush(name): pathlib.Path({log!r}).open("a").write("push " + name + chr(10))
def RangePop(): pathlib.Path({log!r}).open("a").write("pop" + chr(10))
"""


def test_the_child_really_runs_the_engine_of_the_parent_with_its_ranges(program, monkeypatch, tmp_path):
    """Under a program that runs its child as nsys does; CuPy's ranges are written down by a package that stands for it."""
    program(run_child=True)
    folder, log = tmp_path / "packages" / "cupy" / "cuda", tmp_path / "ranges.log"
    folder.mkdir(parents=True)
    for init in (folder.parent / "__init__.py", folder / "__init__.py"):
        init.write_text("")
    (folder / "nvtx.py").write_text(CUPY.format(log=str(log)))
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    model = tmp_path / "tiny.gguf"
    write_tiny(model, Tiny("llama"))
    request = {"model": str(model), "tokens": [1, 2, 3], "passes": 2, "engine": {"backend": "numpy", "context": 8}}
    nsys.profile(nsys.nsys_binary(), request)
    lines = log.read_text().splitlines()
    operations = MeasuredEngine(model, EngineOptions("numpy")).operations(3)
    expected = ["push window labelled"]
    for index in range(len(operations)):
        expected += [f"push op {index}", "pop"]
    assert lines == [*expected, "pop", "push window pass 0", "pop", "push window pass 1", "pop"]


def test_a_child_for_the_peer_runs_the_peer(monkeypatch):
    opened, prefills, ranges = [], [], []

    class Peer:
        def __init__(self, model, options):
            opened.append((model.name, options))

        def __enter__(self):
            return self

        def __exit__(self, *error):
            opened.append("closed")

        def prefill(self, tokens):
            prefills.append(tokens)

    monkeypatch.setattr(nsys_child, "LlamaCpp", Peer)
    peer = {"nt": 2, "ubatch": 512, "threads": 1, "gpu_layers": 999}
    request = {"model": "m.gguf", "tokens": [4, 5], "passes": 1, "peer": peer}
    nsys_child.run(request, ranges.append, lambda: ranges.append("pop"))
    assert opened == [("m.gguf", PeerOptions(**peer)), "closed"]
    assert len(prefills) == nsys_child.WARM_UPS + 1
    assert ranges == ["window pass 0", "pop"]


class Engine:
    """As much of a measured engine as the instrument asks."""

    def __init__(self, path):
        self.path, self.options, self.backend, self.gates = path, EngineOptions(context=64), "cuda", {"graphs": True}

    def operations(self, nt):
        return list(OPERATIONS)


def test_without_cupti_nsys_is_the_instrument_and_one_child_serves_three_traces(program, no_cupti, tmp_path):
    log = program()
    instrument = gpu_instrument.gpu_instrument()
    assert instrument.name == "nsys"
    assert "child process" in instrument.notes[0]
    assert "CUPTI: not here" in instrument.notes[0]
    engine = Engine(tmp_path / "m.gguf")
    first, second = instrument.trace_engine(engine, [1, 2]), instrument.trace_engine(engine, [1, 2])
    assert [first.window_ns, second.window_ns] == [(2000, 2600), (3000, 3500)]
    # A program that does nothing first: can it make a report at all?
    assert len(called(log)) == 4
    asked = called(log)[2]
    assert asked[asked.index("-c") - 1] == sys.executable
    assert np.array_equal(first.launches.operation, [0, 1, 1])


def test_where_nsys_fails_cuda_events_stand_in_and_say_so(program, no_cupti, tmp_path, monkeypatch):
    program()
    instrument = gpu_instrument.gpu_instrument()
    log = program(code=1)
    log.unlink()
    labelled = nsys.cut(nsys.nsys_sqlite.read(tmp_path / "exported.sqlite"), (100, 1000))
    monkeypatch.setattr(gpu_instrument.CudaEventInstrument, "trace_engine", lambda self, engine, tokens: labelled)
    traces = [instrument.trace_engine(Engine(tmp_path / "m.gguf"), [1]) for _ in range(3)]
    assert "nsys failed: nsys profile: exit code 1" in traces[0].notes[0]
    # It is asked once, and all say why in the same words.
    assert len(called(log)) == 1
    assert traces[0].notes == traces[1].notes == traces[2].notes


def test_without_cupti_and_nsys_cuda_events_are_the_instrument(no_cupti, monkeypatch):
    monkeypatch.delenv("MINFER_NSYS", raising=False)
    monkeypatch.setattr(programs.shutil, "which", lambda name: None)
    instrument = gpu_instrument.gpu_instrument()
    assert instrument.name == "cuda events"
    assert "nsys is not installed" in instrument.notes[0]
