"""The walls of a window, in three rounds over all prompt lengths: sampled in turn, passes traced, operations named.

No sample is taken once the tracer was on, and no pass of a graph is traced once kernels were launched one by one under it:
on an H200 the launches inside a graph then lie 0.4 us apart instead of 0.06, until the process ends. The engine's graphs
come first, then what launches kernel by kernel: the pass that names the engine's operations, and llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from .arms import Arm, PeerWeights, engine_arm, peer_arms, peer_ubatches
from .attribution import checks
from .attribution.events import Trace
from .attribution.record import PEER, Conditions, Wall
from .capture.conditions import Probe
from .capture.instrument import Instrument
from .engine import MeasuredEngine
from .interleave import interleaved, planned_rounds, quarantined, usable
from .stages import Stages

WARM_UPS = 2
"""Rounds that are not counted, after each arm has run once."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine, loaded."""

    engine: MeasuredEngine
    peaks: Mapping[int, int | None]
    """Memory by prompt length, measured while nothing else was open."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each arm runs."""

    samples: int
    least_samples: int
    traced: int
    seconds_per_nt: float


@dataclass(frozen=True, slots=True)
class Sampled:
    """The walls of one prompt length by arm, the engine's own first, not taken apart yet."""

    walls: dict[str, Wall]
    states: tuple[Conditions, ...]


@dataclass(frozen=True, slots=True)
class Sitting:
    """What all lengths have in common."""

    engines: Mapping[str, Opened]
    peer: PeerWeights | None
    instrument: Instrument
    probe: Probe
    effort: Effort
    prompts: Mapping[int, Sequence[int]]
    """Tokens by length."""
    notes: list[str]
    stages: Stages

    def sampled(self, nt: int) -> Sampled:
        """Every arm's samples, taken in turn."""
        arms = self._engine_arms(nt)
        peaks = [arm.peak_bytes() for arm in arms]
        try:
            if self.peer is not None:
                self.stages(f"nt {nt}: opening the peer's contexts")
            for arm in self._peer_arms(nt, peer_ubatches(nt)):
                arms.append(arm)
                arm.prefill()
                peaks.append(arm.peak_bytes())
            self.stages(f"nt {nt}: warming up")
            # The first passes load, compile and capture; the last one says how long a round takes.
            warm_ns = [sum(arm.prefill() for arm in arms) for _ in range(WARM_UPS)][-1]
            least = self.effort.least_samples
            wanted = planned_rounds(warm_ns, most=self.effort.samples, least=least, seconds=self.effort.seconds_per_nt)
            self.stages(f"nt {nt}: sampling")
            rounds = interleaved({arm.name: arm.prefill for arm in arms}, wanted, self.probe, self._progress(nt))
            walls = [arm.described() for arm in arms]
        finally:
            for arm in arms:
                arm.close()
        used, quiet = usable(rounds, least)
        if not quiet:
            self.notes.append(f"nt {nt}: fewer than {least} clean samples, so all are shown; measure again")
        found = {
            arm.name: replace(
                wall,
                samples_ns=tuple(taken.ns[arm.name] for taken in used),
                quarantined=quarantined(rounds, arm.name),
                peak_memory_bytes=peak,
            )
            for arm, wall, peak in zip(arms, walls, peaks, strict=True)
        }
        return Sampled(found, (self.probe.snapshot("during"),))

    def passes(self, nt: int) -> dict[str, list[Trace]]:
        """The engine's traced passes by arm."""
        self.stages(f"nt {nt}: tracing")
        return {arm.name: arm.passes() for arm in self._engine_arms(nt)}

    def taken_apart(self, nt: int, sampled: Sampled, passes: Mapping[str, Sequence[Trace]]) -> list[Wall]:
        """The walls with their time by kernel class, and their checks.

        Of the peer its best alone: that is what classes are paired with, and tracing the others would take as long each.
        """
        walls = dict(sampled.walls)
        best = checks.best_wall(walls.values(), PEER, nt)
        self.stages(f"nt {nt}: naming operations")
        for arm in self._engine_arms(nt):
            walls[arm.name] = arm.taken_apart(walls[arm.name], passes[arm.name])
        if best is not None:
            self.stages(f"nt {nt}: tracing the peer")
            for arm in self._peer_arms(nt, (best.ubatch,)):
                with closing(arm):
                    walls[arm.name] = arm.taken_apart(walls[arm.name], ())
            walls = {name: _not_the_best(wall, best) for name, wall in walls.items()}
        first = next(iter(walls.values()))
        found = [_with_work_of(first, wall) for wall in walls.values()]
        return [replace(wall, checks=checks.wall_checks(wall, sampled.states)) for wall in found]

    def _engine_arms(self, nt: int) -> list[Arm]:
        return [
            engine_arm(name, one.engine, one.peaks[nt], self.instrument, self.prompts[nt], self.effort.traced, self.notes)
            for name, one in self.engines.items()
        ]

    def _peer_arms(self, nt: int, ubatches: Sequence[int]) -> Iterator[Arm]:
        if self.peer is not None:
            yield from peer_arms(self.peer, self.instrument, self.prompts[nt], ubatches, self.effort.traced, self.notes)

    def _progress(self, nt: int) -> Callable[[int, int, str | None], None]:
        def said(done: int, of: int, reason: str | None) -> None:
            because = f" (one quarantined: {reason})" if reason else ""
            self.stages.say(f"nt {nt}: sample {done} of {of}{because}")

        return said


def _not_the_best(wall: Wall, best: Wall) -> Wall:
    if wall.engine != best.engine or wall.ubatch == best.ubatch:
        return wall
    return replace(wall, why_not_decomposed=f"{wall.engine} is taken apart at its best, which was ubatch {best.ubatch} here")


def _with_work_of(ours: Wall, theirs: Wall) -> Wall:
    """Fill in the work that a peer's trace cannot tell: causal attention is the model's own, whoever computes it."""
    if ours.decomposition is None or theirs.decomposition is None:
        return theirs
    known = {found.name: found.macs for found in ours.decomposition.classes if found.name == "attention"}
    classes = tuple(
        replace(found, macs=known.get(found.name)) if found.macs is None else found for found in theirs.decomposition.classes
    )
    return replace(theirs, decomposition=replace(theirs.decomposition, classes=classes))
