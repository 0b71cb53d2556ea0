"""Which samples are quarantined: decided from readings alone, so the tests hand in the readings."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.attribution.record import Conditions
from benchmarks.capture import conditions, nvml
from benchmarks.capture.conditions import CpuCounters, Limits, Probe, clock_drift, foreign_processes, quarantine_reason

IDLE = CpuCounters(busy=100.0, stolen=1.0, total=1000.0, own=5.0)


def seen(when="during", **fields):
    return Conditions(when=when, time="2026-01-01T00:00:00.000+00:00", **fields)


def test_a_quiet_sample_stands():
    assert quarantine_reason([seen("before"), seen(clock_mhz={"sm": 1900.0}), seen("after")]) is None


def test_a_foreign_process_and_a_throttle_do_not():
    assert quarantine_reason([seen(foreign_processes=("process 7 on the GPU",))]) == "not alone: process 7 on the GPU"
    assert quarantine_reason([seen(throttle_reasons=("thermal (hardware)",))]) == "throttled: thermal (hardware)"


def test_a_power_cap_alone_stands():
    assert quarantine_reason([seen(throttle_reasons=("power cap",))]) is None


def test_a_long_list_is_cut():
    many = tuple(f"process {pid} on the GPU" for pid in range(5))
    assert quarantine_reason([seen(foreign_processes=many)]).endswith("process 2 on the GPU and 2 more")


@pytest.mark.parametrize(
    "used, own, stolen, words",
    [(15.0, 15.0, 0.0, ()), (15.0, 4.0, 0.0, ("other processes used 11%",)), (10.0, 10.0, 3.0, ("the hypervisor kept 3%",))],
)
def test_cpu_time_of_others_counts_and_ones_own_does_not(used, own, stolen, words):
    later = CpuCounters(IDLE.busy + used, IDLE.stolen + stolen, IDLE.total + 100, IDLE.own + own)
    found = conditions.cpu_interference(IDLE, later, Limits())
    assert len(found) == len(words)
    assert all(text.startswith(start) for text, start in zip(found, words, strict=True))


def test_a_machine_that_tells_nothing_is_no_reason(tmp_path):
    assert conditions.read_cpu(tmp_path) is None
    assert conditions.cpu_clock_mhz(tmp_path) is None
    assert conditions.cpu_interference(None, IDLE, Limits()) == ()
    with Probe(with_gpu=False, proc=tmp_path).watching() as watch:
        pass
    assert [c.when for c in watch.conditions] == ["before", "after"]
    assert quarantine_reason(watch.conditions) is None


def test_proc_stat_is_read_in_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(conditions.os, "sysconf", lambda name: 100)
    (tmp_path / "stat").write_text("cpu  1000 100 300 5000 200 10 20 70 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    (tmp_path / "cpuinfo").write_text("cpu MHz\t\t: 2000.0\nmodel name: x\ncpu MHz\t\t: 3000.0\n")
    counters = conditions.read_cpu(tmp_path)
    assert (counters.busy, counters.stolen, counters.total) == pytest.approx((14.3, 0.7, 67.0))
    assert conditions.cpu_clock_mhz(tmp_path) == 2500


@pytest.mark.parametrize(
    "before, during, after, own, foreign",
    [
        (set(), [{41}], set(), {41}, set()),
        (set(), [{900}], set(), {41}, set()),
        (set(), [{900, 901}], set(), {41}, {900, 901}),
        ({7}, [{7, 900}], {7}, {41}, {7}),
        (set(), [{41, 9}], set(), {41}, {9}),
        (set(), [], {9}, {41}, {9}),
    ],
    ids=["own id", "own under the host's id", "two unknown", "neighbour stays", "neighbour comes", "seen only after"],
)
def test_whose_gpu_process_it_is(before, during, after, own, foreign):
    assert foreign_processes(before, during, after, own) == foreign


def test_clock_drift_compares_what_was_seen_during_the_arms():
    working = [seen(clock_mhz={"sm": clock}) for clock in (1980.0, 1965.0, 1980.0)]
    base = [seen("before", clock_mhz={"sm": 300.0}), *working, seen("after", clock_mhz={"sm": 300.0})]
    slow = [replace(c, clock_mhz={"sm": 1700.0}) for c in base]
    assert clock_drift(base, slow, Limits()) == "clock drift: sm at 1980 MHz, then 1700 MHz"
    assert clock_drift(base, base, Limits()) is None
    assert clock_drift([base[0], base[-1]], [slow[0], slow[-1]], Limits()) is None
    assert clock_drift(base[:3], slow[:3], Limits()) is None
    # At its power cap a GPU moves its clock all the time: that is no change of the machine.
    capped = replace(slow[2], throttle_reasons=("power cap",))
    assert clock_drift(base, [*slow[:2], capped, *slow[3:]], Limits()) is None
    assert clock_drift([seen(clock_mhz={"cpu": 800.0})] * 3, [seen(clock_mhz={"cpu": 3000.0})] * 3, Limits()) is None


class FakeError(Exception):
    pass


def fake_library(**functions):
    def refuse(*_):
        raise FakeError

    names = ("Init", "DeviceGetHandleByIndex", "DeviceGetClockInfo", "DeviceGetPowerUsage", "DeviceGetTemperature",
             "DeviceGetCurrentClocksThrottleReasons", "DeviceGetCurrentClocksEventReasons",
             "DeviceGetComputeRunningProcesses", "DeviceGetUtilizationRates",
             "DeviceGetCudaComputeCapability")  # fmt: skip
    constants = {"NVMLError": FakeError, "NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2, "NVML_TEMPERATURE_GPU": 0}
    base = {f"nvml{name}": refuse for name in names} | constants
    return SimpleNamespace(**(base | functions))


def test_no_driver_is_no_device(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert nvml.first_visible_device(fake_library()) is None


def test_what_the_driver_refuses_stays_empty_and_the_rest_is_read(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    library = fake_library(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: f"device {index}",
        nvmlDeviceGetClockInfo=lambda handle, kind: {1: 1980, 2: 2619}[kind],
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x1 | 0x4 | 0x40,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [SimpleNamespace(pid=12)],
    )
    state = nvml.first_visible_device(library).state()
    assert state.clock_mhz == {"sm": 1980, "memory": 2619}
    assert state.power_w is None
    assert state.throttle_reasons == ("power cap", "thermal (hardware)")
    assert state.processes == {12}


def test_the_compute_capability_is_two_numbers_or_unknown(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    told = {"nvmlInit": lambda: None, "nvmlDeviceGetHandleByIndex": lambda index: index}
    assert nvml.first_visible_device(fake_library(**told)).compute_capability() is None
    told["nvmlDeviceGetCudaComputeCapability"] = lambda handle: [9, 0]
    assert nvml.first_visible_device(fake_library(**told)).compute_capability() == (9, 0)


def test_a_watched_gpu_sample_names_its_neighbour(monkeypatch):
    states = iter([nvml.GpuState(processes=set()), nvml.GpuState(processes={5})])
    monkeypatch.setattr(conditions, "first_visible_device", lambda: SimpleNamespace(state=lambda: next(states)))
    with Probe().watching() as watch:
        watch.own.add(4)
    assert "process 5 on the GPU" in quarantine_reason(watch.conditions)


def test_a_process_that_measures_itself_is_not_its_own_neighbour(monkeypatch):
    states = iter([nvml.GpuState(processes={900}), nvml.GpuState(processes={900, 901})])
    monkeypatch.setattr(conditions, "first_visible_device", lambda: SimpleNamespace(state=lambda: next(states)))
    probe = Probe()
    assert probe.snapshot("during").foreign_processes == ()
    assert len(probe.snapshot("after").foreign_processes) == 2


def test_only_looks_at_which_the_gpu_worked_count_as_during(monkeypatch):
    looks = iter([(300.0, None), (345.0, 0.0), (1980.0, 0.7), (1965.0, 0.9)])
    seen_all = threading.Event()

    def state():
        clock, share = next(looks, (345.0, 0.0))
        if share == 0.9:
            seen_all.set()
        return nvml.GpuState(clock_mhz={"sm": clock}, utilisation=share)

    monkeypatch.setattr(conditions, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(conditions, "first_visible_device", lambda: SimpleNamespace(state=state))
    with Probe().watching() as watch:
        assert seen_all.wait(10)
    assert [c.clock_mhz["sm"] for c in watch.conditions] == [300.0, 1980.0, 1965.0, 345.0]
