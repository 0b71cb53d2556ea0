"""This checkout's kernels, all targets: what `make test` holds them to. Then two commits of a real repository."""

from __future__ import annotations

import shutil
import subprocess
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.commands import static
from benchmarks.static.collect import TARGETS, NoKernelsError, collect, exported
from benchmarks.static.store import read_static, static_path
from benchmarks.static_kernels import SOURCES, StaticKernels
from minfer.backends.cuda.launch import DECODED, expert_tiles
from minfer.kernels import build

CHECKOUT = Path(__file__).resolve().parents[3]
MAY_SPILL: frozenset[str] = frozenset()
"""Kernels for which a spill was measured to cost nothing."""


@pytest.fixture(scope="module")
def kernels():
    return collect(CHECKOUT)


HOPPER_ONLY = ("attention_hopper", "expert_fused", "fused")
"""Sources whose kernels exist on one target; the others compile to nothing."""


def test_every_source_is_compiled_for_every_target(kernels):
    expected = {(s, t) for s in build.source_names() for t in TARGETS if s not in HOPPER_ONLY or t == "sm_90a"}
    assert {(one.source, one.target) for one in kernels} == expected
    assert TARGETS == build.TARGETS


def test_no_kernel_spills(kernels):
    assert {one.key for one in kernels if one.spill_bytes and one.kernel not in MAY_SPILL} == set()


def test_matrix_kernels_use_the_matrix_unit_in_their_main_loop(kernels):
    flash = [one for one in kernels if "_fa_" in one.kernel]
    assert flash
    assert all(one.matrix_kinds.get("HMMA", 0) >= 64 and one.loop_per_matrix < 50 for one in flash)
    hopper = [one for one in kernels if one.source == "attention_hopper"]
    # Scores and sums of a tile of keys: width / 16 and keys / 16 products, in the loop and once before and after it.
    assert {one.kernel: one.matrix_kinds for one in hopper} == {
        "minfer_attention_hopper_64": {"HGMMA": 2 * (4 + 8)},
        "minfer_attention_hopper_128": {"HGMMA": 2 * (8 + 8)},
        "minfer_attention_hopper_256": {"HGMMA": 2 * (16 + 4)},
    }
    fused = [one for one in kernels if one.source in ("fused", "expert_fused")]
    # Four slices of 64 columns in the loop, each four products deep.
    assert len(fused) == 12 + 6 and all(one.matrix_kinds == {"HGMMA": 16} for one in fused)
    experts = {one.key: one.matrix_kinds for one in kernels if one.source == "expert_gemm"}
    # Two tiles of 16 rows by four products, for each eight choices.
    assert experts == {
        (f"minfer_gemm_{kind}_experts_{tokens}", target): {"HMMA": tokens}
        for target in TARGETS for kind in DECODED for tokens in expert_tiles(kind)
    }  # fmt: skip


def test_every_source_has_a_series(kernels):
    assert {one.source for one in kernels} <= set(SOURCES)
    benchmark = StaticKernels()
    cache = benchmark.setup_cache()
    benchmark.setup(cache, "attention", "sm_90a")
    assert benchmark.track_registers(cache, "attention", "sm_90a") > 100
    with pytest.raises(NotImplementedError, match=r"no kernels/nothing\.cu"):
        benchmark.setup(cache, "nothing", "sm_90a")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of two commits whose second one needs more registers and spills; the engine's compiler is this one's."""
    monkeypatch.setenv("MINFER_KERNEL_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "repository"
    shutil.copytree(
        CHECKOUT / "minfer" / "kernels", root / "minfer" / "kernels", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(CHECKOUT / "minfer" / "errors.py", root / "minfer" / "errors.py")
    (root / "minfer" / "__init__.py").write_text("")
    (root / "kernels").mkdir()
    (root / "kernels" / "common.cuh").write_text("")

    def commit(body):
        (root / "kernels" / "one.cu").write_text(
            f'extern "C" __global__ void __launch_bounds__(1024) one(float* x) {{ {body} }}\n'
        )
        for command in (["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one"]):
            subprocess.run(["git", "-C", str(root), *command], check=True)

    subprocess.run(["git", "init", "-q", str(root)], check=True)
    commit("x[threadIdx.x] *= 2.0f;")
    loop = '_Pragma("unroll") for (int i = 0; i < 128; i++)'
    commit(
        f"float v[128]; {loop} v[i] = x[i * 1024 + threadIdx.x]; "
        f"for (int step = 0; step < (int)x[0]; step++) {{ {loop} v[i] = v[i] * v[(i + 1) % 128] + 1.0f; }} "
        f"{loop} x[i * 1024 + threadIdx.x] = v[i];"
    )
    return root


def compare(repository, monkeypatch, base):
    monkeypatch.setattr(static, "__file__", str(repository / "benchmarks" / "commands" / "static.py"))
    return static.run(Namespace(base=base, target=["sm_80"], kernel="", json=False, store=None))


def test_a_commit_that_spills_fails_against_one_that_does_not(repository, monkeypatch, capsys):
    assert compare(repository, monkeypatch, "HEAD~1") == 1
    out, err = capsys.readouterr()
    assert "WORSE  one" in out
    assert "spill_bytes" in out
    assert "got worse since HEAD~1" in err


def test_a_commit_against_itself_passes(repository, monkeypatch, capsys):
    assert compare(repository, monkeypatch, "HEAD") == 0
    assert "1 kernel builds are as they were at HEAD" in capsys.readouterr().out


def test_an_unknown_revision_is_one_line(repository):
    with pytest.raises(NoKernelsError, match=r"revision nowhere: .*name a commit"), exported(repository, "nowhere"):
        pass


def test_a_checkout_without_kernels_is_one_line(tmp_path):
    with pytest.raises(NoKernelsError, match="no CUDA kernels yet"):
        collect(tmp_path)


def test_kernels_that_do_not_compile_are_named(repository):
    (repository / "kernels" / "one.cu").write_text("broken")
    with pytest.raises(NoKernelsError, match=r"one\.cu"):
        collect(repository, ["sm_80"])


def test_figures_of_named_commits_are_kept_below_the_results(repository, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(static, "__file__", str(repository / "benchmarks" / "commands" / "static.py"))
    results = tmp_path / "results"
    asked = Namespace(store=["HEAD~1", "HEAD"], results=results, target=["sm_80"], base=None, kernel="", json=False)
    assert static.run(asked) == 0
    commits = subprocess.run(
        ["git", "-C", str(repository), "rev-list", "--reverse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.split()
    before, after = (read_static(static_path(results, commit)).of("sm_80")["one"] for commit in commits)
    assert (before.spill_bytes, after.spill_bytes > 0) == (0, True)
    assert "1 kernels" in capsys.readouterr().out
