"""A machine is filed under its class, which tells machines apart by what matters and never by a host name."""

import platform

import pytest

from benchmarks.capture import machine


@pytest.mark.parametrize(
    ("gpu", "cpu", "cores", "name"),
    [
        (None, "AMD EPYC", 2, "epyc-2core"),
        (None, "AMD EPYC 9654 96-Core Processor", 96, "epyc-96core"),
        (None, "Intel(R) Xeon(R) Processor", 2, "xeon-2core"),
        (None, "12th Gen Intel(R) Core(TM) i7-1260P", 16, "12th-16core"),
        (("NVIDIA H200", "580.1"), "Intel(R) Xeon(R) Processor", 16, "h200"),
        (("NVIDIA GeForce RTX 4090", "580.1"), "AMD", 8, "rtx-4090"),
        (("NVIDIA A100-SXM4-80GB", "580.1"), "AMD", 8, "a100-sxm4"),
    ],
)
def test_machine_class(monkeypatch, gpu, cpu, cores, name):
    monkeypatch.setattr(machine, "gpu", lambda: gpu)
    monkeypatch.setattr(machine, "cpu_model", lambda: cpu)
    monkeypatch.setattr(machine, "usable_cores", lambda: cores)
    assert machine.machine_class() == name


def test_the_description_names_no_host():
    found = machine.describe_machine("epyc-2core")
    assert platform.node() not in repr(found).replace("epyc-2core", "")
    assert found.cores >= 1
    assert found.memory_bytes > 1 << 28
    assert "numpy" in found.libraries
