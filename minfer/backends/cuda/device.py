"""The GPU itself: CuPy where it is usable, and one clear line where it is not."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import KernelError
from ...kernels.build import build, target_of
from .driver import Kernel, Module, driver_version

_TOOLKIT = (13, 0)
"""CUDA of the compiler whose cubins are loaded; a driver of the same major version runs them."""

_PAGE_LOCKED_BYTES = 4 << 20
"""Of one result at most: the logits of a vocabulary of up to a million tokens."""


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise KernelError(
            f"backend cuda needs CuPy ({error}); install it with: pip install 'minfer[cuda]', or use backend numpy"
        ) from error
    return cupy


class DeviceMemory:
    """Device memory that is given back to the driver when nobody refers to it: no pool keeps it from other programs."""

    def __init__(self, pointer: int, nbytes: int, free: Callable[[int], None]) -> None:
        self.pointer = pointer
        self.nbytes = nbytes
        # At the interpreter's end the driver takes everything back itself.
        weakref.finalize(self, free, pointer).atexit = False


class Device:
    """Device 0, one stream on it, and the kernels loaded so far."""

    def __init__(self) -> None:
        self.cupy = _cupy()
        runtime = self.cupy.cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise KernelError(f"no usable NVIDIA GPU ({error}); check nvidia-smi, or use backend numpy") from error
        if count == 0:
            raise KernelError("no NVIDIA GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use backend numpy")
        newest = driver_version()
        if newest < _TOOLKIT:
            raise KernelError(
                f"the NVIDIA driver supports CUDA {newest[0]}.{newest[1]}, the kernels are compiled by CUDA "
                f"{_TOOLKIT[0]}.{_TOOLKIT[1]}; "
                "update the driver, or use backend numpy"
            )
        self.device = self.cupy.cuda.Device(0)
        self.device.use()
        properties = runtime.getDeviceProperties(0)
        self.name = properties["name"].decode()
        self.target = target_of(int(properties["major"]), int(properties["minor"]))
        self.multiprocessors = int(properties["multiProcessorCount"])
        runtime.free(0)  # makes the context that the driver interface needs
        self.stream = self.cupy.cuda.Stream(non_blocking=True)
        self._handle = ctypes.c_void_p(self.stream.ptr)
        self._held: Callable[[], None] | None = None
        self._modules: dict[str, Module] = {}
        self._kernels: dict[tuple[str, int, int], Kernel] = {}

    def use(self) -> None:
        """Make the stream CuPy's and cuBLAS's current one in this thread."""
        self.device.use()
        self.stream.use()

    @property
    def stream_handle(self) -> ctypes.c_void_p:
        """The stream, behind whatever was held back."""
        self.release()
        return self._handle

    def hold(self, launch: Callable[[], None]) -> None:
        """Hold a launch back until anything else is to be queued: it may grow until then."""
        self._held = launch

    def release(self) -> None:
        """Queue what was held back."""
        held, self._held = self._held, None
        if held is not None:
            held()

    def kernel(self, source: str, name: str, layout: str, threads: int, shared: int = 0) -> Kernel:
        """Kernel ``minfer_<name>`` of ``kernels/<source>.cu``, compiled and loaded when first asked for."""
        found = self._kernels.get((name, threads, shared))
        if found is None:
            if source not in self._modules:
                self._modules[source] = Module(source, build(source, self.target).path.read_bytes())
            found = self._modules[source].kernel(f"minfer_{name}", layout, threads, shared)
            self._kernels[name, threads, shared] = found
        return found

    def allocate(self, nbytes: int) -> DeviceMemory:
        """``nbytes`` of device memory. Raises KernelError where there is not enough."""
        runtime = self.cupy.cuda.runtime
        try:
            return DeviceMemory(int(runtime.malloc(max(nbytes, 1))), nbytes, runtime.free)
        except runtime.CUDARuntimeError as error:
            free, total = runtime.memGetInfo()
            raise KernelError(
                f"GPU memory: {nbytes / 2**20:.0f} MiB asked for, {free / 2**20:.0f} of {total / 2**20:.0f} MiB free "
                f"({error}); lower the ubatch or the context, close other programs on the GPU, or use backend numpy"
            ) from error

    def upload(self, pointer: int, host: Any) -> None:
        """Copy a contiguous NumPy array to ``pointer``; the array may change afterwards.

        Tried for a pass's tokens: page-locked memory. The call takes 31 us under a tracer either way, and Python 25 more.
        """
        self.cupy.cuda.runtime.memcpyAsync(pointer, _address(host), host.nbytes, 1, self.stream_handle.value)

    def host_array(self, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        """An unset array that the device copies to and from directly: page-locked where it is small, as long as it lives.

        Through other memory each result is copied once more by the host, out of and into memory that no cache holds. CuPy's
        pool takes the memory back when the last view of the array is gone.
        """
        count = prod(shape)
        if not 0 < count * dtype().nbytes <= _PAGE_LOCKED_BYTES:
            return np.empty(shape, dtype)
        try:
            memory = self.cupy.cuda.alloc_pinned_memory(count * dtype().nbytes)
        except self.cupy.cuda.runtime.CUDARuntimeError:
            # The system locks no more pages for this process: any memory will do.
            return np.empty(shape, dtype)
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def fetch(self, *parts: tuple[Any, int]) -> None:
        """Copy from each address into its contiguous NumPy array, and wait for all that was queued before."""
        for host, pointer in parts:
            self.download(host, pointer)
        self.stream.synchronize()

    def download(self, host: Any, pointer: int) -> None:
        """Queue a copy of ``host.nbytes`` bytes from ``pointer`` into a NumPy array; synchronise before reading it."""
        self.cupy.cuda.runtime.memcpyAsync(_address(host), pointer, host.nbytes, 2, self.stream_handle.value)


def _address(array: NDArray[Any]) -> int:
    """Of an array's first element: its ``ctypes`` attribute makes an object for each question."""
    address: int = array.__array_interface__["data"][0]
    return address


def usable() -> bool:
    """Whether CuPy is installed and sees a GPU that the kernels run on, with a driver that loads them. Never raises."""
    try:
        runtime = _cupy().cuda.runtime
        if runtime.getDeviceCount() == 0 or driver_version() < _TOOLKIT:
            return False
        properties = runtime.getDeviceProperties(0)
        target_of(int(properties["major"]), int(properties["minor"]))
    except (KernelError, RuntimeError):
        return False
    return True
