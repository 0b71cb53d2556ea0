"""The rate is that of the instruction: more than nothing where the CPU has it, no ceiling where it has not."""

import shutil
from pathlib import Path

import pytest

from benchmarks.attribution.record import Ceiling
from benchmarks.attribution.recover import ceiling_cost, per_second
from benchmarks.capture import integer_rate


def has_instruction():
    try:
        return "avx512_vnni" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


def test_a_ceiling_exactly_where_the_cpu_has_the_instruction(monkeypatch):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: install gcc")
    monkeypatch.setattr(integer_rate, "_ROUNDS", 1000)
    found = integer_rate.integer_ceiling()
    assert (found is not None) == has_instruction()
    if found is not None:
        assert min(found.samples) <= found.value <= max(found.samples)
        assert per_second(found) > 1e6


def test_no_compiler_no_ceiling(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert integer_rate.integer_ceiling() is None


def test_the_faster_of_two_exact_rates_prices_a_class():
    rates = [Ceiling("f32 GEMM", "TFLOP/s", 0.2, (0.2,)), Ceiling("int16 GEMM", "TOP/s", 0.4, (0.4,))]
    assert ceiling_cost(rates, "q4_K GEMM") == ("int16 GEMM", pytest.approx(5000))
