"""One measurement window: everything that is later divided by each other, taken in one sitting, as one record.

Opens the engine and its peers; walls.py samples and traces them. Nothing here computes a ratio: that is what pairs are for
(attribution/pair.py).
"""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from .arms import peer_ubatches, peer_weights
from .attribution import checks
from .attribution.git import GitError, run_git
from .attribution.macs import same_gmac
from .attribution.record import ENGINE, PEER, Check, Record, Wall, Window
from .capture import ceilings
from .capture.conditions import Probe
from .capture.instrument import Instrument, instrument_for
from .capture.machine import describe_machine, usable_cores, uses_gpu
from .capture.memory import PeakMemory, open_cuda_context
from .digest import ModelOf
from .engine import EngineOptions, MeasuredEngine
from .peer_walls import llama_bench_walls, transformers_walls
from .peers.llama_bench import BenchOptions
from .stages import Say, Stages
from .walls import Effort, Opened, Sampled, Sitting

TOKEN_SEED = 37
FIRST_PLAIN_TOKEN = 300
"""Lower ids are control and byte tokens in every vocabulary met so far."""

BENCH_SAMPLES = 5
"""Of llama-bench at each ubatch: it checks the walls taken in process and makes no pair with them, so half as many do."""


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
    beside: tuple[EngineOptions, ...] = ()
    """The same engine with other gates, measured in the same window."""
    peer: bool = True


def prompt(nt: int, vocabulary: int) -> list[int]:
    """``nt`` token ids, the same for every engine, commit and day: speed must not depend on a text."""
    first = min(FIRST_PLAIN_TOKEN, vocabulary // 2)
    return [int(i) for i in np.random.default_rng(TOKEN_SEED).integers(first, vocabulary, nt)]


def take_window(plan: Plan, say: Say = lambda text: None) -> Record:
    """Measure everything in ``plan``. What the engine raises passes through; a missing peer is noted on the record."""
    started, stages = _now(), Stages(say)
    stages("looking at the machine")
    probe = Probe()
    states = [probe.snapshot("before")]
    shared = open_cuda_context() if uses_gpu(plan.engine.backend) else None
    stages("opening the engine")
    model_of = ModelOf()
    # Only where the driver counts memory: in a count of the process the thread's would be the engine's.
    engines = {ENGINE: _open(plan, plan.engine, stages, model_of.begin if shared is not None else None)}
    engine = engines[ENGINE].engine
    instrument = instrument_for(engine)
    notes = list(instrument.notes)
    if shared is not None:
        notes.append(f"device memory is without the CUDA context's {shared / 2**20:.0f} MiB, which all here share")
    for options in plan.beside:
        named = ",".join(f"{name}={value}" for name, value in options.gates.items())
        try:
            stages(f"opening the engine with {named}")
            engines[f"{ENGINE} {named}"] = _open(plan, options, stages)
        except ValueError as error:
            notes.append(f"not measured beside: {error}")
    walls: list[Wall] = []
    with ExitStack() as opened:
        peer = None
        if plan.peer:
            stages("opening the peer")
            peer = opened.enter_context(peer_weights(plan.model, instrument, notes))
        else:
            notes.append("no peer: not asked for")
        stages("reading the weights' digest")
        model = model_of(engine)
        prompts = {nt: prompt(nt, engine.vocabulary) for nt in plan.nts}
        effort = Effort(plan.samples, plan.least_samples, plan.traced, plan.seconds_per_nt)
        sitting = Sitting(engines, peer, instrument, probe, effort, prompts, notes, stages)
        sampled, bench = {}, {}
        for nt in plan.nts:
            sampled[nt] = sitting.sampled(nt)
            bench[nt] = _llama_bench(plan, instrument, nt, sampled[nt], notes, stages)
            states.append(probe.snapshot("during"))
        passes = {nt: sitting.passes(nt) for nt in plan.nts}
        for nt in plan.nts:
            walls += [*sitting.taken_apart(nt, sampled[nt], passes[nt]), *bench[nt]]
            if plan.peer:
                walls += transformers_walls(plan.model, instrument, prompts[nt], plan.samples, notes, stages)
    stages("measuring the machine's ceilings")
    limits = ceilings.measure(engine.backend)
    states.append(probe.snapshot("after"))
    commit, date = _commit()
    stages_ns = stages.ended()
    record = Record(
        commit=commit,
        commit_time=date,
        machine=describe_machine(plan.machine),
        window=Window(f"{plan.machine} {commit[:8]} {started}", started, _now(), tuple(states), stages_ns),
        instrument=instrument.name,
        instrument_version=instrument.version,
        model=model,
        walls=tuple(walls),
        ceilings=limits,
        notes=tuple(dict.fromkeys(notes)),
    )
    return replace(record, checks=(*checks.record_checks(record), *_same_work(record)))


def _open(
    plan: Plan, options: EngineOptions, stages: Stages, loaded: Callable[[MeasuredEngine], None] | None = None
) -> Opened:
    memory = PeakMemory(on_device=uses_gpu(options.backend))
    engine = MeasuredEngine(plan.model, options)
    if loaded is not None:
        loaded(engine)
    stages("the engine's first passes")
    peaks: dict[int, int | None] = {}
    for nt in sorted(plan.nts):
        engine.prefill(prompt(nt, engine.vocabulary))
        peaks[nt] = memory.bytes()
    return Opened(engine, peaks)


def _llama_bench(
    plan: Plan, instrument: Instrument, nt: int, sampled: Sampled, notes: list[str], stages: Stages
) -> list[Wall]:
    if not plan.peer:
        return []
    samples = min(plan.samples, BENCH_SAMPLES)
    how = BenchOptions(nt, peer_ubatches(nt), samples, usable_cores(), instrument.gpu_layers)
    return llama_bench_walls(plan.model, how, list(sampled.walls.values()), notes, stages)


def _same_work(record: Record) -> tuple[Check, ...]:
    """Trust rule 6 for each prompt length that has a peer: the same weights are the same GMAC on both sides."""
    found = []
    for nt in sorted({wall.nt for wall in record.walls}):
        ours, theirs = (checks.best_wall(record.walls, engine, nt) for engine in (ENGINE, PEER))
        if ours and theirs and ours.decomposition and theirs.decomposition:
            sides = (f"{ENGINE} @{nt}", f"{PEER} @{nt}")
            found.append(same_gmac(ours.decomposition.classes, theirs.decomposition.classes, sides))
    return tuple(found)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _commit() -> tuple[str, str]:
    """Hash and ISO date of the measured commit: asv's word for it, else this checkout's HEAD."""
    root = os.environ.get("ASV_PYTHONPATH", "").split(os.pathsep)[0] or str(Path(__file__).resolve().parents[1])
    named = os.environ.get("ASV_COMMIT", "HEAD")
    try:
        commit, date = run_git(Path(root), "show", "-s", "--format=%H %cI", named).split()
    except GitError as error:
        print(f"window: {error}", file=sys.stderr)
        return named, ""
    return commit, date
