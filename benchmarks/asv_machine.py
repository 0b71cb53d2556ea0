"""asv's own note of a machine, made from ours: it then runs without asking, under the machine's class, GPU included."""

from __future__ import annotations

import platform

from asv.machine import MachineCollection

from .attribution.record import Machine


def register(machine: Machine) -> None:
    """Tell asv about a machine, in its file in the home folder. Fields as asv names them, plus the GPU and its driver."""
    fields = {
        "machine": machine.name,
        "os": machine.os,
        "num_cpu": str(machine.cores),
        "arch": platform.machine(),
        "cpu": machine.cpu,
        "ram": str(machine.memory_bytes),
    }
    if machine.gpu is not None:
        fields |= {"gpu": machine.gpu, "driver": machine.driver or ""}
    MachineCollection.save(machine.name, fields)
