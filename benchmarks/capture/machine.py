"""What machine this is: its class (never its host name), its parts, its libraries."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from functools import cache
from pathlib import Path

from ..attribution.record import Machine

_LIBRARIES = ("numpy", "xllamacpp", "llama-cpp-python", "cupy-cuda13x", "cupti-python", "torch", "transformers", "asv")
# Words of a CPU's or GPU's marketing name that tell no two classes apart.
_NOISE = {"amd", "intel", "nvidia", "r", "tm", "cpu", "processor", "core", "virtual", "genuine", "geforce", "gpu", "apple"}


def cpu_model() -> str:
    """The processor's name as the kernel reports it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


@cache
def gpu() -> tuple[str, str] | None:
    """(name, driver version) of the first NVIDIA GPU, by NVML; None where there is none or no NVML."""
    try:
        import pynvml
    except ModuleNotFoundError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
        driver = pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    return _text(name), _text(driver)


def uses_gpu(backend: str) -> bool:
    """Whether an engine opened with ``backend`` ("auto", "numpy", "cuda") runs on a GPU here."""
    return backend == "cuda" or (backend == "auto" and gpu() is not None)


def machine_class() -> str:
    """A name for machines that are alike: the GPU's model ("h200"), else the CPU's with its cores ("epyc-2core")."""
    device = gpu()
    if device is not None:
        return _short(device[0]) or "gpu"
    word = _short(cpu_model()).split("-")[0] or platform.machine()
    return f"{word}-{usable_cores()}core"


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def describe_machine(name: str) -> Machine:
    """Everything of the machine that a result depends on."""
    device = gpu()
    libraries = {}
    for distribution in _LIBRARIES:
        try:
            libraries[distribution] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Machine(
        name=name,
        cpu=cpu_model(),
        cores=usable_cores(),
        memory_bytes=memory_bytes(),
        os=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        gpu=device[0] if device else None,
        driver=device[1] if device else None,
        libraries=libraries,
    )


def _short(name: str) -> str:
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word and word not in _NOISE]
    return "-".join(words[:2])


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
