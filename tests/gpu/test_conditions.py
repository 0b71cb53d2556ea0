"""The watch on a real GPU: its own work is no neighbour, another process's is."""

import subprocess
import sys
import time

import pytest

from benchmarks.capture.conditions import Probe, clock_drift, quarantine_reason

WORK = """
import time, cupy
a = cupy.ones((4096, 4096), cupy.float32)
until = time.monotonic() + 4
while time.monotonic() < until:
    (a @ a).sum().item()
"""


@pytest.fixture
def started(gpu):
    """Starts processes that keep the GPU at work; ends them after the test."""
    running = []

    def start():
        running.append(subprocess.Popen([sys.executable, "-c", WORK]))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def watched(probe, start):
    with probe.watching() as watch:
        process = start()
        watch.own.add(process.pid)
        assert process.wait(60) == 0
    return watch.conditions


def test_a_gpu_at_work_is_seen_at_one_clock(started):
    probe = Probe()
    first, second = watched(probe, started), watched(probe, started)
    during = [seen for seen in first if seen.when == "during"]
    assert len(during) >= 3
    assert all(seen.clock_mhz["sm"] > 0 and seen.power_w > 0 and seen.temperature_c > 0 for seen in during)
    assert clock_drift(first, second, probe.limits) is None


def test_a_neighbour_on_the_gpu_is_named(started):
    """Beside whatever else stands there, this test's own process first of all."""
    alone = foreign(watched(Probe(), started))
    started()
    time.sleep(2)
    conditions = watched(Probe(), started)
    assert len(foreign(conditions)) == len(alone) + 1
    assert "on the GPU" in quarantine_reason(conditions)


def foreign(conditions):
    return {name for seen in conditions for name in seen.foreign_processes if name.endswith("on the GPU")}
