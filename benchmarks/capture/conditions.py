"""The state of the machine around a sample, and whether the sample may stand.

On a GPU, NVML tells clocks, temperature, power, throttle reasons and which processes compute there. On the CPU, /proc/stat
tells how much work other processes did meanwhile and how much time the hypervisor kept. What a machine does not tell is
None or empty: it is never a reason to quarantine and never read as "fine".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from ..attribution.record import Conditions
from .nvml import Device, GpuState, first_visible_device

POLL_SECONDS = 0.5
MAX_FOREIGN_CPU = 0.10
MAX_STEAL = 0.02
MAX_CLOCK_DRIFT = 0.03
MIN_CLOCK_READINGS = 3
BEFORE, DURING, AFTER = "before", "during", "after"
POWER_CAP = "power cap"
"""Among the throttle reasons: the GPU draws what it may."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond these a sample is quarantined."""

    foreign_cpu: float = MAX_FOREIGN_CPU
    """Share of all cores that other processes may use meanwhile."""
    steal: float = MAX_STEAL
    """Share of all cores' time that the hypervisor may keep."""
    clock_drift: float = MAX_CLOCK_DRIFT
    """Relative difference of a clock between the two arms of a pair."""


@dataclass(frozen=True, slots=True)
class CpuCounters:
    """Seconds since boot, summed over the cores, and what this process and its finished children used."""

    busy: float
    stolen: float
    total: float
    own: float


@dataclass
class Watch:
    """One sample being watched. ``own`` takes the process ids that belong to the sample."""

    own: set[int] = field(default_factory=set)
    conditions: tuple[Conditions, ...] = ()
    """Filled when the watch ends: one "before", a "during" for each look at which the GPU was at work, one "after"."""


class Probe:
    """Takes snapshots of one machine. The GPU is opened at the first use and only where there is one."""

    def __init__(self, limits: Limits | None = None, with_gpu: bool = True, proc: Path = Path("/proc")) -> None:
        self.limits = limits or Limits()
        self._proc = proc
        self._device: Device | None = first_visible_device() if with_gpu else None

    def snapshot(self, when: str) -> Conditions:
        """The machine now, for a process that measures itself: the one GPU process that may be this one is not foreign."""
        state = self._device.state() if self._device else None
        processes = state.processes if state else set()
        return self._conditions(when, state, _named(foreign_processes(set(), [processes], set(), {os.getpid()})))

    @contextmanager
    def watching(self, in_process: bool = False) -> Iterator[Watch]:
        """Watch what runs in the body; ``Watch.conditions`` is complete after it.

        ``in_process``: the sample runs in this process, which holds the GPU before and after it as well.
        """
        watch = Watch({os.getpid()} if in_process else set())
        counters = read_cpu(self._proc)
        before = self._device.state() if self._device else None
        first = self._conditions(BEFORE, before, ())
        polled: list[tuple[Conditions, GpuState]] = []
        stop = threading.Event()
        poller = threading.Thread(target=self._poll, args=(stop, polled), daemon=True) if self._device else None
        if poller:
            poller.start()
        try:
            yield watch
        finally:
            stop.set()
            if poller:
                poller.join()
            after = self._device.state() if self._device else None
            foreign = cpu_interference(counters, read_cpu(self._proc), self.limits)
            if before and after:
                during = [state.processes for _, state in polled]
                if in_process:
                    pids = foreign_processes(set(), [before.processes, *during, after.processes], set(), watch.own)
                else:
                    pids = foreign_processes(before.processes, during, after.processes, watch.own)
                foreign = (*foreign, *_named(pids))
            working = (seen for seen, state in polled if state.utilisation != 0)
            watch.conditions = (first, *working, self._conditions(AFTER, after, foreign))

    def _poll(self, stop: threading.Event, polled: list[tuple[Conditions, GpuState]]) -> None:
        while self._device and not stop.wait(POLL_SECONDS):
            state = self._device.state()
            polled.append((self._conditions(DURING, state, ()), state))

    def _conditions(self, when: str, state: GpuState | None, foreign: tuple[str, ...]) -> Conditions:
        cpu = cpu_clock_mhz(self._proc)
        clocks = dict(state.clock_mhz) if state else {}
        if cpu is not None:
            clocks["cpu"] = cpu
        return Conditions(
            when=when,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            clock_mhz=clocks,
            temperature_c=state.temperature_c if state else None,
            power_w=state.power_w if state else None,
            load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            foreign_processes=foreign,
            throttle_reasons=state.throttle_reasons if state else (),
        )


def quarantine_reason(conditions: Sequence[Conditions]) -> str | None:
    """Why this sample must not be used, in a few words; None where nothing speaks against it.

    A power cap alone is no reason: large GPUs sit at it under every long matrix product.
    """
    foreign = sorted({name for seen in conditions for name in seen.foreign_processes})
    if foreign:
        return "not alone: " + ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
    throttled = sorted({reason for seen in conditions for reason in seen.throttle_reasons} - {POWER_CAP})
    return "throttled: " + ", ".join(throttled) if throttled else None


def clock_drift(base: Sequence[Conditions], head: Sequence[Conditions], limits: Limits) -> str | None:
    """Why the two arms of a pair cannot be divided: a clock that ran at another rate in the second one.

    Compares the snapshots in which the GPU was at work, because an idle one clocks down; too few say nothing. Nor do those
    of a GPU at its power cap: it then sets its clock anew every few ms by what the work draws (1530 to 1965 MHz within a
    second on an H200), so that is noise of the samples, which more pairs average out, and no change of the machine. The
    CPU's clock is recorded and not compared: the kernel states a momentary mean over all cores, and idle ones run slow.
    """
    if any(POWER_CAP in seen.throttle_reasons for seen in (*base, *head)):
        return None
    for name in sorted({name for seen in base for name in seen.clock_mhz} - {"cpu"}):
        first, second = _clock(base, name), _clock(head, name)
        if first and second and abs(second / first - 1) > limits.clock_drift:
            return f"clock drift: {name} at {first:.0f} MHz, then {second:.0f} MHz"
    return None


def foreign_processes(before: set[int], during: Sequence[set[int]], after: set[int], own: set[int]) -> set[int]:
    """GPU processes that are not the sample's.

    In a container NVML counts in the host's process ids, so the sample's own process appears under an unknown number:
    one unknown process that comes and goes with the sample, while none of its own ids is ever seen, is the sample itself.
    """
    seen: set[int] = set().union(*during) if during else set()
    standing = (before | after) - own
    unknown = seen - own - standing
    if len(unknown) == 1 and not seen & own:
        unknown = set()
    return standing | unknown


def cpu_interference(before: CpuCounters | None, after: CpuCounters | None, limits: Limits) -> tuple[str, ...]:
    """What took CPU time from a sample between two readings, as sentences; empty where it stayed within the limits."""
    if before is None or after is None or after.total <= before.total:
        return ()
    elapsed = after.total - before.total
    foreign = max(0.0, (after.busy - before.busy) - (after.own - before.own)) / elapsed
    stolen = max(0.0, after.stolen - before.stolen) / elapsed
    found: list[str] = []
    if foreign > limits.foreign_cpu:
        found.append(f"other processes used {foreign:.0%} of the cores (limit {limits.foreign_cpu:.0%})")
    if stolen > limits.steal:
        found.append(f"the hypervisor kept {stolen:.0%} of the cores' time (limit {limits.steal:.0%})")
    return tuple(found)


def read_cpu(proc: Path) -> CpuCounters | None:
    """None where the kernel offers no /proc/stat."""
    try:
        fields = (proc / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        ticks = os.sysconf("SC_CLK_TCK")
        user, nice, system, idle, wait, interrupt, soft, stolen = (int(value) / ticks for value in fields)
    except (OSError, ValueError):
        return None
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    busy = user + nice + system + interrupt + soft
    return CpuCounters(busy, stolen, busy + idle + wait + stolen, own)


def cpu_clock_mhz(proc: Path) -> float | None:
    """Mean clock of the cores as the kernel states it; None where it does not."""
    try:
        lines = (proc / "cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        clocks = [float(line.split(":")[1]) for line in lines if line.startswith("cpu MHz")]
    except (OSError, ValueError, IndexError):
        return None
    return sum(clocks) / len(clocks) if clocks else None


def _named(pids: set[int]) -> tuple[str, ...]:
    return tuple(f"process {pid} on the GPU" for pid in sorted(pids))


def _clock(conditions: Sequence[Conditions], name: str) -> float | None:
    during = [seen.clock_mhz[name] for seen in conditions if seen.when == DURING and name in seen.clock_mhz]
    return median(during) if len(during) >= MIN_CLOCK_READINGS else None
