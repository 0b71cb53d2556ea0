"""The rate is that of the instruction: more than nothing where the engine uses it, no ceiling where it does not."""

import ctypes
import platform
import shutil
from pathlib import Path

import pytest

from benchmarks.attribution.record import Ceiling
from benchmarks.attribution.recover import ceiling_cost, per_second
from benchmarks.capture import integer_rate
from minfer.kernels import host


def has(*instructions):
    try:
        words = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    return set(instructions) <= set(words)


needs_x86 = pytest.mark.skipif(
    shutil.which("cc") is None or platform.machine() != "x86_64", reason="no C compiler, or not an x86: install gcc"
)


@needs_x86
@pytest.mark.parametrize(
    ("cpu", "needs", "used"),
    [
        ("native", (), None),
        ("x86-64", (), True),
        ("sandybridge", ("avx",), False),
        ("x86-64-v3", ("avx2", "fma"), True),
        ("x86-64-v4", ("avx512f", "avx512bw"), False),
    ],
)
def test_a_ceiling_exactly_where_the_engine_multiplies_integers(monkeypatch, tmp_path, cpu, needs, used):
    if not has(*needs):
        pytest.skip(f"this CPU lacks {needs}")
    monkeypatch.setattr(integer_rate, "_ROUNDS", 1000)
    monkeypatch.setattr(integer_rate, "_CPU", f"-march={cpu}")
    engine = ctypes.CDLL(str(host.build(flags=(*host.FLAGS, f"-march={cpu}")))).minfer_integers_fast()
    found = integer_rate.integer_ceiling()
    assert (found is not None) == bool(engine)
    assert used is None or bool(engine) == used
    if found is not None:
        assert min(found.samples) <= found.value <= max(found.samples)
        assert per_second(found) > 1e6


@pytest.mark.parametrize("lines", ["exec sleep 60", "exit 1", "exit 0"])
def test_a_compiler_that_hangs_fails_or_makes_nothing_gives_no_ceiling(monkeypatch, tmp_path, lines):
    (tmp_path / "cc").write_text(f"#!/bin/sh\n{lines}\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / name))
    monkeypatch.setattr(integer_rate, "_LONGEST_COMPILATION_S", 0.2)
    assert integer_rate.integer_ceiling() is None


def test_no_compiler_no_ceiling(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert integer_rate.integer_ceiling() is None


def test_the_faster_of_two_exact_rates_prices_a_class():
    rates = [Ceiling("f32 GEMM", "TFLOP/s", 0.2, (0.2,)), Ceiling("int16 GEMM", "TOP/s", 0.4, (0.4,))]
    assert ceiling_cost(rates, "q4_K GEMM") == ("int16 GEMM", pytest.approx(5000))
