"""The order of a window: nothing is sampled once the tracer was on, and graphs are traced before single launches."""

from types import SimpleNamespace

import pytest

from benchmarks import walls
from benchmarks.arms import Arm
from benchmarks.attribution.record import ClassTime, Decomposition, Wall
from benchmarks.capture.conditions import Probe
from benchmarks.stages import Stages
from benchmarks.walls import Effort, Opened, Sitting

NTS = (512, 3325)
FASTEST = 2048
"""The peer's best ubatch where it is tried."""
ATTENTION = {"minfer": 7, "llama.cpp": None}


@pytest.fixture
def log(monkeypatch, tmp_path):
    """What arms did; those of the peer are opened anew each time that they are asked for."""
    done = []

    def arm(name, nt, ubatch=None):
        engine = name.split()[0]

        def apart(wall, passes):
            done.append(f"apart {name} {nt} of {len(passes)}")
            part = Decomposition(100, 90, 0, {"queued": 10}, (ClassTime("attention", 90, 1, macs=ATTENTION[engine]),))
            return Wall(**{**fields(wall), "decomposition": part, "traced_ns": (100,)})

        return Arm(
            name=name,
            prefill=lambda: done.append(f"sample {name} {nt}") or 1000 * nt + abs((ubatch or FASTEST) - FASTEST),
            described=lambda: Wall(engine, "1", "cuda", nt, ubatch or nt, {}, ()),
            passes=lambda: done.append(f"pass {name} {nt}") or ["trace"] * 3,
            taken_apart=apart,
            peak_bytes=lambda: len(done),
            close=lambda: done.append(f"close {name} {nt}"),
        )

    monkeypatch.setattr(walls, "engine_arm", lambda name, engine, peak, *rest: arm(name, len(rest[1])))

    def peer_arms(peer, instrument, tokens, ubatches, *rest):
        return (arm(f"llama.cpp {ubatch}", len(tokens), ubatch) for ubatch in ubatches)

    monkeypatch.setattr(walls, "peer_arms", peer_arms)
    monkeypatch.setattr("benchmarks.interleave.SETTLE_S", 0)
    return done


def fields(wall):
    return {name: getattr(wall, name) for name in Wall.__slots__}


def sitting(tmp_path, peer=True):
    engines = {name: Opened(SimpleNamespace(), dict.fromkeys(NTS, 1)) for name in ("minfer", "minfer fused=0")}
    probe = Probe(with_gpu=False, proc=tmp_path)
    stages = Stages(lambda text: None)
    prompts = {nt: [1] * nt for nt in NTS}
    return Sitting(engines, peer or None, None, probe, Effort(4, 2, 3, 1.0), prompts, [], stages)


def test_all_lengths_are_sampled_then_graphs_are_traced_then_what_launches_one_by_one(log, tmp_path):
    whole = sitting(tmp_path)
    sampled = {nt: whole.sampled(nt) for nt in NTS}
    passes = {nt: whole.passes(nt) for nt in NTS}
    found = [wall for nt in NTS for wall in whole.taken_apart(nt, sampled[nt], passes[nt])]
    last_sample = max(i for i, text in enumerate(log) if text.startswith("sample"))
    passed = [i for i, text in enumerate(log) if text.startswith("pass")]
    apart = [i for i, text in enumerate(log) if text.startswith("apart")]
    assert last_sample < min(passed) and max(passed) < min(apart)
    assert [log[i] for i in passed] == [f"pass {name} {nt}" for nt in NTS for name in ("minfer", "minfer fused=0")]
    assert [(wall.engine, wall.nt, len(wall.samples_ns)) for wall in found] == [
        (engine, nt, 4) for nt, peers in ((512, 2), (3325, 3)) for engine in ("minfer", "minfer", *["llama.cpp"] * peers)
    ]
    # The engine's passes are handed on, the peer takes its own; what its trace cannot tell comes from the engine's.
    assert "apart minfer fused=0 512 of 3" in log and "apart llama.cpp 512 512 of 0" in log
    assert [wall.decomposition.classes[0].macs for wall in found if wall.decomposition] == [7] * 6
    assert all(check.name for wall in found for check in wall.checks)
    # Each context of the peer is closed again, both times that it was opened.
    opened = [(512, 512), (256, 512), (512, 3325), (2048, 3325), (3325, 3325), (512, 512), (2048, 3325)]
    assert [text for text in log if text.startswith("close llama.cpp")] == [f"close llama.cpp {u} {nt}" for u, nt in opened]


def test_the_peer_is_taken_apart_at_its_best_ubatch_alone(log, tmp_path):
    whole = sitting(tmp_path)
    found = whole.taken_apart(3325, whole.sampled(3325), whole.passes(3325))
    peers = {wall.ubatch: wall for wall in found if wall.engine == "llama.cpp"}
    assert sorted(peers) == [512, 2048, 3325]
    assert [ubatch for ubatch, wall in peers.items() if wall.decomposition is not None] == [2048]
    assert peers[512].why_not_decomposed == "llama.cpp is taken apart at its best, which was ubatch 2048 here"
    assert [text for text in log if text.startswith("apart llama.cpp")] == ["apart llama.cpp 2048 3325 of 0"]


def test_the_peer_is_closed_where_sampling_fails(log, tmp_path, monkeypatch):
    def fails(*arguments, **named):
        raise ZeroDivisionError

    monkeypatch.setattr(walls, "interleaved", fails)
    with pytest.raises(ZeroDivisionError):
        sitting(tmp_path).sampled(512)
    assert "close llama.cpp 512 512" in log


def test_without_a_peer_there_are_the_engines_walls_and_no_stage_of_the_peer(log, tmp_path):
    alone = sitting(tmp_path, peer=False)
    sampled = alone.sampled(512)
    found = alone.taken_apart(512, sampled, alone.passes(512))
    assert [wall.engine for wall in found] == ["minfer", "minfer"]
    assert not any("peer" in stage for stage in alone.stages.ended())
