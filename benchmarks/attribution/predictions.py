"""What commits say that they will move, before it is measured: ``Predicts:`` trailers, joined with the records.

Predicts: q6_K GEMM -900 ms @3325
Predicts: q4_K GEMM -2.5 us/GMAC @3325
Predicts: tok/s +9.7 % @3325
Predicts: wall -120 ms @512
Predicts: gap -0.8 ms @512
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .history import Commit
from .pair import cost_figure
from .record import ENGINE, Record, Wall
from .spread import Figure, Interval, class_figure, difference, wall_figure

HIT, MISS, UNMEASURED = "hit", "miss", "unmeasured"
HIT_FACTOR = 2.0
"""A measured change within this factor of the predicted one, either way and of the same sign, is a hit."""
WALL, RATE, GAP = "wall", "tok/s", "gap"
UNITS = ("ms", "us/GMAC", "tok/s", "%")
_KEY = "Predicts:"
_TRAILER = re.compile(
    r"^(?P<subject>\S.*?)\s+(?P<sign>[+\-\u2212])\s?(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>ms|[uµ]s/GMAC|tok/s|%)\s*@\s?(?P<nt>\d+)$"
)
_LIKE_KEY = re.compile(r"^\s*(predicts?|predictions?)\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prediction:
    commit: str
    subject: str
    """A kernel class, "wall", "gap" or "tok/s"."""
    change: float
    """Signed, in ``unit``."""
    unit: str
    nt: int


@dataclass(frozen=True, slots=True)
class BadTrailer:
    """A line that wants to be a prediction and is not one. ``line`` counts from 1 in the commit's message."""

    commit: str
    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    prediction: Prediction
    verdict: str
    """HIT, MISS or UNMEASURED."""
    measured: Figure | None
    """In the prediction's unit."""
    detail: str
    """Why it was not measured, or which commit it was measured against."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How good the predictions of a history are."""

    hits: int
    misses: int
    unmeasured: int
    median_ratio: float | None
    """Median of measured / predicted where the sign was right: 1 is well calibrated, under 1 promises too much."""
    wrong_sign: int


def parse_predictions(commit: str, message: str) -> tuple[tuple[Prediction, ...], tuple[BadTrailer, ...]]:
    """The predictions of one commit message and the lines that fail to be one."""
    good: list[Prediction] = []
    bad: list[BadTrailer] = []
    for number, line in enumerate(message.splitlines(), 1):
        text = line.rstrip()
        if not text.startswith(_KEY):
            if _LIKE_KEY.match(text):
                bad.append(BadTrailer(commit, number, text, f"expected {_KEY!r} at the start of the line"))
            continue
        found = _read(commit, text.removeprefix(_KEY).strip())
        if isinstance(found, str):
            bad.append(BadTrailer(commit, number, text, found))
        else:
            good.append(found)
    return tuple(good), tuple(bad)


def outcomes(
    history: Sequence[Commit], records: Iterable[Record], *, machine: str, engine: str = ENGINE
) -> tuple[tuple[Outcome, ...], tuple[BadTrailer, ...]]:
    """Every prediction of a history (newest first) with what one machine class measured.

    After is the record of the commit itself, before is that of its nearest measured ancestor, both of the same model,
    backend and ubatch; of several records the last that can be compared counts.
    """
    held: dict[str, list[Record]] = {}
    for record in records:
        if record.machine.name == machine:
            held.setdefault(record.commit, []).append(record)
    parent = {commit.id: commit.parents[0] if commit.parents else "" for commit in history}
    joined: list[Outcome] = []
    bad: list[BadTrailer] = []
    for commit in history:
        good, broken = parse_predictions(commit.id, commit.message)
        bad.extend(broken)
        joined.extend(_outcome(prediction, held, parent, engine) for prediction in good)
    return tuple(joined), tuple(bad)


def judge(prediction: Prediction, measured: Figure) -> str:
    """Hit: same sign and within HIT_FACTOR, or the interval of the measured change holds the predicted one. Else miss."""
    change = measured.value
    if change * prediction.change > 0 and 1 / HIT_FACTOR <= change / prediction.change <= HIT_FACTOR:
        return HIT
    spread = measured.interval
    if spread is not None and _is_narrow(spread, change) and spread.low <= prediction.change <= spread.high:
        return HIT
    return MISS


def calibration(joined: Iterable[Outcome]) -> Calibration:
    """Counts of verdicts, and the median of measured over predicted."""
    listed = list(joined)
    measured = [(item.measured.value / item.prediction.change) for item in listed if item.measured is not None]
    right = [ratio for ratio in measured if ratio > 0]
    return Calibration(
        hits=sum(item.verdict == HIT for item in listed),
        misses=sum(item.verdict == MISS for item in listed),
        unmeasured=sum(item.verdict == UNMEASURED for item in listed),
        median_ratio=math.exp(statistics.median(map(math.log, right))) if right else None,
        wrong_sign=len(measured) - len(right),
    )


def _read(commit: str, text: str) -> Prediction | str:
    match = _TRAILER.match(text)
    if match is None:
        if re.search(r"@\s?\d+$", text) is None:
            return "names no prompt length: end it with @<tokens>"
        return f"expected '<class or metric> <signed change> <unit> @<tokens>' with a unit of {', '.join(UNITS)}"
    value = float(match["value"])
    subject, unit = match["subject"], match["unit"].replace("µs", "us")
    if value == 0 or int(match["nt"]) == 0:
        return "a change of 0, or at 0 tokens, predicts nothing"
    if unit == "tok/s" and subject != RATE:
        return f"tok/s is of the whole prefill: write '{RATE} ...'"
    if (subject == RATE and unit not in ("tok/s", "%")) or (subject in (WALL, GAP) and unit not in ("ms", "%")):
        return f"{subject} is not measured in {unit}"
    return Prediction(commit, subject, -value if match["sign"] != "+" else value, unit, int(match["nt"]))


def _outcome(prediction: Prediction, held: dict[str, list[Record]], parent: dict[str, str], engine: str) -> Outcome:
    """The newest record of the commit that can be compared decides; else the reason why its newest cannot."""
    answers = [
        _against_ancestor(prediction, record, held, parent, engine) for record in reversed(held.get(prediction.commit, []))
    ]
    if not answers:
        return Outcome(prediction, UNMEASURED, None, "the commit has no record")
    return next((answer for answer in answers if answer.measured is not None), answers[0])


def _against_ancestor(
    prediction: Prediction, after: Record, held: dict[str, list[Record]], parent: dict[str, str], engine: str
) -> Outcome:
    ancestor = parent.get(prediction.commit, "")
    before: Record | None = None
    while ancestor and before is None:
        same_model = (record for record in reversed(held.get(ancestor, [])) if record.model.digest == after.model.digest)
        before = next(same_model, None)
        if before is None:
            ancestor = parent.get(ancestor, "")
    if before is None:
        return Outcome(prediction, UNMEASURED, None, "no ancestor has a record of this model")
    walls = _matching(before, after, engine, prediction.nt)
    if walls is None:
        return Outcome(prediction, UNMEASURED, None, f"not measured at {prediction.nt} tokens on both sides")
    first, second = (_value(wall, prediction) for wall in walls)
    if first is None or second is None:
        return Outcome(prediction, UNMEASURED, None, f"{prediction.subject} is not known in {prediction.unit} on both sides")
    measured = difference(second, first)
    if prediction.unit == "%":
        if first.value == 0:
            return Outcome(prediction, UNMEASURED, None, f"{prediction.subject} was 0 before: a change has no share of it")
        measured = measured.scaled(100.0 / first.value)
    note = "" if before.window.id == after.window.id else ", in another window"
    return Outcome(prediction, judge(prediction, measured), measured, f"against {ancestor[:12]}{note}")


def _matching(before: Record, after: Record, engine: str, nt: int) -> tuple[Wall, Wall] | None:
    for new in after.walls:
        if new.engine == engine and new.nt == nt:
            for old in before.walls:
                if (old.engine, old.nt, old.backend, old.ubatch) == (engine, nt, new.backend, new.ubatch):
                    return old, new
    return None


def _value(wall: Wall, prediction: Prediction) -> Figure | None:
    """The subject in the prediction's unit ("%": in ns or tok/s, of which a share is taken)."""
    if prediction.subject in (WALL, RATE):
        if not wall.samples_ns and wall.decomposition is None:
            return None
        time = wall_figure(wall)
        if prediction.subject == RATE:
            return _rate(time, wall.nt)
        return time.scaled(1e-6)
    if prediction.subject == GAP:
        return Figure(sum(wall.decomposition.gap_ns.values()) * 1e-6) if wall.decomposition else None
    classes = wall.decomposition.classes if wall.decomposition else ()
    item = next((item for item in classes if item.name == prediction.subject), None)
    if item is None:
        return None
    if prediction.unit == "us/GMAC":
        return cost_figure(class_figure(item), item.macs)
    return class_figure(item).scaled(1e-6)


def _rate(time: Figure, nt: int) -> Figure:
    spread = time.interval
    turned = None
    if spread is not None:
        turned = Interval(nt / (spread.high * 1e-9), nt / (spread.low * 1e-9), spread.confidence)
    return Figure(nt / (time.value * 1e-9), turned)


def _is_narrow(spread: Interval, change: float) -> bool:
    """An interval that holds no change at all tells nothing of a prediction, so it cannot make it a hit."""
    return not spread.low <= 0 <= spread.high and change != 0
