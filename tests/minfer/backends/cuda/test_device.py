"""Machines on which the GPU cannot be used: each gets one line that says what to do."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from minfer.backends import make_backend
from minfer.backends.cuda import device as device_module
from minfer.backends.cuda import driver, usable
from minfer.errors import MinferError
from minfer.kernels import KernelError


class CUDARuntimeError(RuntimeError):
    pass


def fake_cupy(devices=1, major=9, minor=0, free=1 << 30):
    """As much of CuPy as opening a device touches."""

    def count():
        if isinstance(devices, Exception):
            raise devices
        return devices

    def malloc(size):
        if size > free:
            raise CUDARuntimeError("cudaErrorMemoryAllocation")
        return 4096

    runtime = SimpleNamespace(
        getDeviceCount=count,
        CUDARuntimeError=CUDARuntimeError,
        getDeviceProperties=lambda _: {"name": b"Fake", "major": major, "minor": minor, "multiProcessorCount": 2},
        memGetInfo=lambda: (free, 2 * free),
        free=lambda _: None,
        malloc=malloc,
    )
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(
        runtime=runtime,
        Device=lambda _: SimpleNamespace(use=lambda: None),
        Stream=lambda non_blocking: SimpleNamespace(ptr=1, use=lambda: None),
    )
    return cupy


@pytest.fixture
def machine(monkeypatch):
    """Installs a fake CuPy (None: none) over a driver for CUDA ``version``."""

    def install(cupy, version=(13, 0)):
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setattr(device_module, "driver_version", lambda: version)

    return install


def test_without_cupy_the_line_says_what_to_install(machine):
    machine(None)
    with pytest.raises(MinferError, match=r"needs CuPy .*pip install 'minfer\[cuda\]'"):
        make_backend("cuda", {})
    assert not usable()


def test_auto_falls_back_to_numpy_without_cupy(machine):
    machine(None)
    assert make_backend("auto", {}).name == "numpy"


def test_auto_falls_back_to_numpy_where_the_driver_fails(machine):
    machine(fake_cupy(CUDARuntimeError("cudaErrorInsufficientDriver")))
    assert make_backend("auto", {}).name == "numpy"


@pytest.mark.parametrize(
    ("cupy", "version", "line"),
    [
        (fake_cupy(CUDARuntimeError("cudaErrorNoDevice")), (13, 0), "no usable NVIDIA GPU .cudaErrorNoDevice.; check"),
        (fake_cupy(0), (13, 0), "no NVIDIA GPU is visible; check nvidia-smi"),
        (fake_cupy(), (12, 4), r"driver supports CUDA 12\.4.*update the driver"),
        (fake_cupy(major=7, minor=5), (13, 0), r"compute capability 7\.5, the kernels need 8\.0"),
    ],
)
def test_a_machine_that_cannot_run_the_kernels_gets_one_line(machine, cupy, version, line):
    machine(cupy, version)
    with pytest.raises(KernelError, match=line) as caught:
        device_module.Device()
    assert "\n" not in str(caught.value)
    assert "backend numpy" in str(caught.value)


@pytest.mark.parametrize(
    ("cupy", "version"), [(fake_cupy(0), (13, 0)), (fake_cupy(), (12, 4)), (fake_cupy(major=7), (13, 0))]
)
def test_auto_takes_numpy_where_the_gpu_cannot_run_the_kernels(machine, cupy, version):
    machine(cupy, version)
    assert not usable()
    assert make_backend("auto", {}).name == "numpy"


def test_memory_is_given_back_when_nobody_refers_to_it(machine):
    given_back = []
    cupy = fake_cupy()
    cupy.cuda.runtime.free = given_back.append
    machine(cupy)
    memory = device_module.Device().allocate(100)
    del given_back[:]
    assert memory.pointer == 4096
    del memory
    assert given_back == [4096]


def test_out_of_memory_says_how_much_and_what_to_lower(machine):
    machine(fake_cupy(free=1 << 20))
    with pytest.raises(KernelError, match=r"4 MiB asked for, 1 of 2 MiB free .*; lower the ubatch or the context"):
        device_module.Device().allocate(4 << 20)


def test_a_missing_driver_library_is_one_line(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    driver.library.cache_clear()
    monkeypatch.setattr(driver.ctypes, "CDLL", missing)
    with pytest.raises(KernelError, match=r"no NVIDIA driver is installed.*backend numpy"):
        driver.driver_version()
    driver.library.cache_clear()


@pytest.mark.parametrize(("free", "tokens"), [(1 << 37, 8192), (1 << 30, 5120), (1 << 20, 256)])
def test_the_default_ubatch_is_what_half_of_the_free_memory_holds(machine, free, tokens):
    from minfer.backends.cuda import CudaBackend

    machine(fake_cupy(free=free))
    backend = CudaBackend.__new__(CudaBackend)
    backend.device = device_module.Device()
    assert backend.default_ubatch(100_000) == tokens
