"""Tests that run kernels. Where there is no GPU they skip, and say so; tools/gpu_check.py runs them on one."""

from __future__ import annotations

import pytest

from minfer.backends.cuda import usable


@pytest.fixture(scope="session")
def backend():
    """A CUDA backend with default gates, and an arena of poison."""
    if not usable():
        pytest.skip("no usable NVIDIA GPU with CuPy: run tools/gpu_check.py on a machine that has one")
    from minfer.backends.cuda import CudaBackend

    return CudaBackend({})


@pytest.fixture
def gpu(backend):
    """Puts arrays on the device and takes them back; every result starts as NaN."""
    from tests.gpu.support import Gpu

    return Gpu(backend)
