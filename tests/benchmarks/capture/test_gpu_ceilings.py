"""The arithmetic of the GPU's ceilings; the measurement itself needs a GPU."""

from __future__ import annotations

import pytest

from benchmarks.capture import ceilings, gpu_ceilings


def test_rates_are_work_over_time_in_tera_units():
    # 43.4 TFLOP in 62 ms is 700 TFLOP/s.
    assert gpu_ceilings.rates_of([62.0, 31.0], 43.4e12) == (pytest.approx(700.0), pytest.approx(1400.0))


def test_the_gpu_is_measured_for_the_cuda_backend_only(monkeypatch):
    monkeypatch.setattr(gpu_ceilings, "measure", lambda: ("the GPU's",))
    assert ceilings.measure("cuda") == ("the GPU's",)
    assert ceilings.measure("something else") == ()


def test_the_ceilings_of_a_real_gpu(request):
    from minfer.backends.cuda import usable

    if not usable():
        pytest.skip("no usable NVIDIA GPU with CuPy")
    found = {ceiling.name: ceiling for ceiling in gpu_ceilings.measure()}
    assert {"copy", "f16 GEMM"} <= set(found)
    assert all(ceiling.value > 0 and len(ceiling.samples) == gpu_ceilings.REPETITIONS for ceiling in found.values())
