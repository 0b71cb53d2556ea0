"""A record's text shows each class with its cost and its pair, every failed check, and never a made-up peer."""

from dataclasses import replace

from benchmarks.attribution.record import Check, ClassTime, Decomposition, Machine, Model, Record, Wall, Window
from benchmarks.report.record_text import render_record


def wall(engine: str, class_ms: float, samples_ms: tuple[float, ...], ubatch: int = 512, **changed) -> Wall:
    ns = round(class_ms * 1e6)
    gemm = ClassTime("q4_K GEMM", ns, 28, macs=2 * 10**9, samples_ns=(ns, ns, ns))
    part = Decomposition(ns + 5_000_000, ns, 0, {"host code": 5_000_000}, (gemm,))
    fields = {"gates": {}, "decomposition": part, "traced_ns": (part.wall_ns,), **changed}
    return Wall(engine, "1", "cpu", 512, ubatch, samples_ns=tuple(round(ms * 1e6) for ms in samples_ms), **fields)


def record(*walls: Wall, **changed) -> Record:
    made = Record(
        commit="ab" * 20, commit_time="2026-11-29T00:00:00Z",
        machine=Machine("epyc-2core", "AMD EPYC", 2, 1 << 34, "Linux", "3.11"),
        window=Window("w", "2026-11-29T12:34:56Z", "2026-11-29T12:40:00Z"), instrument="spans", instrument_version=1,
        model=Model("toy", "d" * 64, "llama", 10**8, {"q4_K": 10**8}), walls=walls,
    )  # fmt: skip
    return replace(made, **changed)


OURS = wall("minfer", 40.0, (50.0, 52.0, 48.0))


def test_each_class_has_its_cost_and_its_ratio_at_this_nt():
    text = render_record(record(OURS, wall("llama.cpp", 20.0, (25.0, 25.0, 25.0))), "a subject")
    assert text.splitlines()[0] == "abababab a subject"
    assert "minfer 10,240 tok/s" in text
    assert "minfer takes 2.00x" in text
    row = next(line for line in text.splitlines() if line.startswith("q4_K GEMM")).split()
    # 40 ms for 2 GMAC is 20,000 us per GMAC; the peer's 20 ms are 10,000.
    assert row == ["q4_K", "GEMM", "40.00", "88.9", "28", "2.00", "20,000", "10,000", "2.00"]
    assert "ratio @512" in text


def test_the_peers_fastest_ubatch_is_the_baseline():
    slow, fast = wall("llama.cpp", 20.0, (40.0,) * 3, ubatch=256), wall("llama.cpp", 20.0, (20.0,) * 3, ubatch=512)
    assert "at ubatch 512; minfer takes 2.50x" in render_record(record(OURS, slow, fast))


def test_without_a_peer_no_ratio_is_shown():
    text = render_record(record(OURS, notes=("no peer: llama.cpp: no library found",)))
    assert "; no peer" in text
    assert "takes" not in text
    row = next(line for line in text.splitlines() if line.startswith("q4_K GEMM")).split()
    assert row[-2:] == ["-", "-"]
    assert "note: no peer: llama.cpp: no library found" in text


def test_failed_checks_are_shown_and_passed_ones_are_not():
    ours = replace(OURS, checks=(Check("closure", True), Check("tracer's own cost", False, detail="3 traced, 10 not")))
    text = render_record(record(ours, checks=(Check("same GMAC", False, detail="q4_K: 1 against 2"),)))
    assert "check failed @512: tracer's own cost: 3 traced, 10 not" in text
    assert "check failed: same GMAC: q4_K: 1 against 2" in text
    assert "closure" not in text


def test_the_gap_is_part_of_the_table():
    assert "gap: host code" in render_record(record(OURS))


def test_what_the_windows_own_time_went_to_comes_last():
    stages = {"opening": 2_540_000_000, "tracing": 800_000_000}
    window = Window("w", "2026-11-29T12:34:56Z", "2026-11-29T12:40:00Z", stages_ns=stages)
    assert render_record(record(OURS, window=window)).splitlines()[-1] == "window: 3 s: opening 2.5, tracing 0.8"
    assert "window:" not in render_record(record(OURS))
