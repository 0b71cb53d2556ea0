"""One measurement window: everything that is later divided by each other, taken in one sitting, as one record.

For each prompt length: warm up, take untraced walls of the engine and of the peer in turn, then traced ones, and take the
trace with the median wall apart. Nothing here computes a ratio: that is what pairs are for (attribution/pair.py).
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from .attribution import checks
from .attribution.events import Trace
from .attribution.macs import same_gmac
from .attribution.record import Check, Record, Wall, Window
from .capture import ceilings
from .capture.conditions import Probe
from .capture.instrument import Instrument, instrument_for, open_peer
from .capture.machine import describe_machine, usable_cores, uses_gpu
from .capture.memory import PeakMemory
from .decomposed import decomposed
from .engine import EngineOptions, MeasuredEngine
from .interleave import interleaved, planned_rounds, quarantined, usable
from .peer_walls import llama_bench_walls, transformers_walls
from .peers.llama_bench import BenchOptions
from .peers.llama_cpp import LlamaCpp
from .peers.llama_library import PeerUnavailableError

PEER_UBATCHES = (512, 2048, 4096)
"""The peer runs at each of these that differ at the prompt's length; the fastest is the baseline, all are kept."""
TOKEN_SEED = 37
FIRST_PLAIN_TOKEN = 300
"""Lower ids are control and byte tokens in every vocabulary met so far."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and how long to go on."""

    model: Path
    nts: tuple[int, ...]
    machine: str
    samples: int = 10
    least_samples: int = 3
    traced: int = 3
    seconds_per_nt: float = 40.0
    engine: EngineOptions = field(default_factory=EngineOptions)
    peer: bool = True


def prompt(nt: int, vocabulary: int) -> list[int]:
    """``nt`` token ids, the same for every engine, commit and day: speed must not depend on a text."""
    first = min(FIRST_PLAIN_TOKEN, vocabulary // 2)
    return [int(i) for i in np.random.default_rng(TOKEN_SEED).integers(first, vocabulary, nt)]


def peer_ubatches(nt: int) -> tuple[int, ...]:
    """The peer's batch sizes to try at ``nt``: always at least two, so that "at its best" means something."""
    sizes = dict.fromkeys(min(ubatch, nt) for ubatch in PEER_UBATCHES)
    return tuple(sizes) if len(sizes) > 1 else (nt, max(1, nt // 2))


def take_window(plan: Plan, say: Callable[[str], None] = lambda text: None) -> Record:
    """Measure everything in ``plan``. What the engine raises passes through; a missing peer is noted on the record."""
    started = _now()
    probe = Probe()
    states = [probe.snapshot("before")]
    memory = PeakMemory(on_device=uses_gpu(plan.engine.backend))
    engine = MeasuredEngine(plan.model, plan.engine)
    instrument = instrument_for(engine)
    notes = list(instrument.notes)
    walls: list[Wall] = []
    for nt in plan.nts:
        walls.extend(_walls(plan, engine, memory, instrument, probe, nt, notes, say))
        if plan.peer:
            how = BenchOptions(nt, peer_ubatches(nt), plan.samples, usable_cores(), instrument.gpu_layers)
            walls.extend(llama_bench_walls(plan.model, how, walls, notes, say))
            tokens = prompt(nt, engine.vocabulary)
            walls.extend(transformers_walls(plan.model, instrument, tokens, plan.samples, notes, say))
        states.append(probe.snapshot("during"))
    say("measuring the machine's ceilings")
    limits = ceilings.measure(engine.backend)
    states.append(probe.snapshot("after"))
    commit, date = _commit()
    record = Record(
        commit=commit,
        commit_time=date,
        machine=describe_machine(plan.machine),
        window=Window(f"{plan.machine} {commit[:8]} {started}", started, _now(), tuple(states)),
        instrument=instrument.name,
        instrument_version=instrument.version,
        model=engine.model(),
        walls=tuple(walls),
        ceilings=limits,
        notes=tuple(dict.fromkeys(notes)),
    )
    return replace(record, checks=(*checks.record_checks(record), *_same_work(record)))


def _walls(
    plan: Plan,
    engine: MeasuredEngine,
    memory: PeakMemory,
    instrument: Instrument,
    probe: Probe,
    nt: int,
    notes: list[str],
    say: Callable[[str], None],
) -> list[Wall]:
    """The engine's wall at ``nt`` and the peer's at each of its ubatches."""
    tokens = prompt(nt, engine.vocabulary)
    say(f"nt {nt}: warming up")
    warm_ns = engine.prefill(tokens)
    peaks = [memory.bytes()]
    arms: dict[str, Callable[[], int]] = {"minfer": lambda: engine.prefill(tokens)}
    peers = _open_peers(plan, instrument, nt, notes)
    try:
        for ubatch, (peer, peer_memory) in peers.items():
            warm_ns += peer.prefill(tokens)
            peaks.append(peer_memory.bytes() if peer.backend == "cuda" else None)
            arms[_arm(ubatch)] = lambda peer=peer: peer.prefill(tokens)  # type: ignore[misc]
        wanted = planned_rounds(warm_ns, most=plan.samples, least=plan.least_samples, seconds=plan.seconds_per_nt)
        rounds = interleaved(arms, wanted, probe, lambda i, of, why: say(f"nt {nt}: sample {i} of {of}{_because(why)}"))
        say(f"nt {nt}: tracing")
        traces = [instrument.trace_engine(engine, tokens) for _ in range(plan.traced)]
        walls = [_engine_wall(engine, nt, traces)]
        walls += [_peer_wall(plan, instrument, peer, ubatch, tokens, notes) for ubatch, (peer, _) in peers.items()]
    finally:
        for peer, _ in peers.values():
            peer.close()
    used, quiet = usable(rounds, plan.least_samples)
    if not quiet:
        notes.append(f"nt {nt}: fewer than {plan.least_samples} clean samples, so all are shown; measure again")
    states = (probe.snapshot("during"),)
    walls = [
        replace(
            _with_work_of(walls[0], wall),
            samples_ns=tuple(taken.ns[arm] for taken in used),
            quarantined=quarantined(rounds, arm),
            peak_memory_bytes=peak,
        )
        for arm, wall, peak in zip(arms, walls, peaks, strict=True)
    ]
    return [replace(wall, checks=checks.wall_checks(wall, states)) for wall in walls]


def _arm(ubatch: int) -> str:
    return f"llama.cpp {ubatch}"


def _open_peers(plan: Plan, instrument: Instrument, nt: int, notes: list[str]) -> dict[int, tuple[LlamaCpp, PeakMemory]]:
    if not plan.peer:
        notes.append("no peer: not asked for")
        return {}
    peers: dict[int, tuple[LlamaCpp, PeakMemory]] = {}
    try:
        for ubatch in peer_ubatches(nt):
            memory = PeakMemory(on_device=instrument.gpu_layers > 0)
            peers[ubatch] = open_peer(instrument, plan.model, nt, ubatch), memory
    except PeerUnavailableError as error:
        notes.append(f"no peer: {error}")
    return peers


def _engine_wall(engine: MeasuredEngine, nt: int, traces: list[Trace]) -> Wall:
    wall = Wall(
        engine=engine.name,
        engine_version=engine.version,
        backend=engine.backend,
        nt=nt,
        ubatch=engine.ubatch,
        gates=engine.gates,
        samples_ns=(),
        memory_bytes=engine.memory(),
    )
    return decomposed(wall, traces)


def _peer_wall(
    plan: Plan, instrument: Instrument, peer: LlamaCpp, ubatch: int, tokens: Sequence[int], notes: list[str]
) -> Wall:
    wall = Wall(
        engine=peer.name,
        engine_version=peer.version,
        backend=peer.backend,
        nt=len(tokens),
        ubatch=ubatch,
        gates={},
        samples_ns=(),
    )
    try:
        return decomposed(wall, instrument.trace_peer(plan.model, peer, tokens, plan.traced))
    except PeerUnavailableError as error:
        notes.append(str(error))
        return replace(wall, why_not_decomposed=str(error))


def _with_work_of(ours: Wall, theirs: Wall) -> Wall:
    """Fill in the work that a peer's trace cannot tell: causal attention is the model's own, whoever computes it."""
    if ours.decomposition is None or theirs.decomposition is None:
        return theirs
    known = {found.name: found.macs for found in ours.decomposition.classes if found.name == "attention"}
    classes = tuple(
        replace(found, macs=known.get(found.name)) if found.macs is None else found for found in theirs.decomposition.classes
    )
    return replace(theirs, decomposition=replace(theirs.decomposition, classes=classes))


def _same_work(record: Record) -> tuple[Check, ...]:
    """Trust rule 6 for each prompt length that has a peer: the same weights are the same GMAC on both sides."""
    found = []
    for nt in sorted({wall.nt for wall in record.walls}):
        ours, theirs = (checks.best_wall(record.walls, engine, nt) for engine in ("minfer", "llama.cpp"))
        if ours and theirs and ours.decomposition and theirs.decomposition:
            sides = (f"minfer @{nt}", f"llama.cpp @{nt}")
            found.append(same_gmac(ours.decomposition.classes, theirs.decomposition.classes, sides))
    return tuple(found)


def _because(reason: str | None) -> str:
    return f" (one quarantined: {reason})" if reason else ""


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _commit() -> tuple[str, str]:
    """Hash and ISO date of the measured commit: asv's word for it, else this checkout's HEAD."""
    root = os.environ.get("ASV_PYTHONPATH", "").split(os.pathsep)[0] or str(Path(__file__).resolve().parents[1])
    named = os.environ.get("ASV_COMMIT", "HEAD")
    done = subprocess.run(
        ["git", "-C", root, "show", "-s", "--format=%H %cI", named], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print(f"window: git show {named} failed: {done.stderr.strip()}", file=sys.stderr)
        return named, ""
    commit, date = done.stdout.split()
    return commit, date
