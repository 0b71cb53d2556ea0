"""The family portrait: every wall's bar closes, what is small is folded, what would dwarf the rest is cut and said."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.attribution.record import ClassTime, Decomposition
from benchmarks.attribution.record_files import read_records
from dashboard.charts.decomposition import stacked
from dashboard.charts.portrait import OTHERS, parts_of, wall_bars
from tests.dashboard.form import checked

REAL = Path(__file__).resolve().parents[3] / "results"


def whole(gap=30, copy=2, **classes):
    items = tuple(ClassTime(name.replace("_", " "), ns, 1) for name, ns in classes.items())
    busy = sum(classes.values())
    return Decomposition(busy + gap + copy, busy, copy, {"host-late": gap}, items)


def test_small_classes_are_one_and_the_bar_still_closes():
    first = whole(gemm=100_000, norm=100, rope=90, unclassified=5)
    second = whole(gemm=200_000, norm=300)
    figure = checked(wall_bars([("a", first), ("b", second)], share=False))
    drawn = {trace.name: dict(zip(trace.y, trace.x, strict=True)) for trace in figure.traces}
    assert list(drawn[OTHERS].values()) == pytest.approx([190 / 1e6, 300 / 1e6])
    assert {"norm", "rope"}.isdisjoint(drawn)
    assert {"unclassified", "copy-only", "gap: host-late"} <= set(drawn)
    for place, taken in enumerate((first, second)):
        assert sum(values.get(place, 0) for values in drawn.values()) == pytest.approx(taken.wall_ns / 1e6)
    assert [note.text for note in figure.layout.annotations][-2:] == ["a: 0.1002 ms", "b: 0.2003 ms"]


def test_a_class_that_is_large_on_any_wall_stands_by_itself():
    walls = [("a", whole(gemm=100_000, norm=1, rope=1)), ("b", whole(gemm=100_000, norm=9_000, rope=1))]
    figure = checked(wall_bars(walls, share=True))
    names = {trace.name for trace in figure.traces}
    assert "norm" in names
    assert OTHERS not in names  # one small class alone keeps its own name
    assert "rope" in names


def test_every_real_walls_parts_add_up_to_it():
    """A kernel class that is called copy is not the time in which only copies ran."""
    seen = set()
    for path in sorted(REAL.glob("*/records/*.jsonl")):
        for record in read_records(path):
            for wall in record.walls:
                if wall.decomposition is not None:
                    assert sum(parts_of(wall.decomposition).values()) == wall.decomposition.wall_ns
                    seen |= {wall.engine}
    assert {"minfer", "llama.cpp", "transformers"} <= seen


def history(walls):
    order = np.arange(len(walls))
    frame = pd.DataFrame({"order": order, "short": [f"{n:08x}" for n in order], "time": "2026-01-01", "subject": "s"})
    ns = [wall * 1e6 for wall in walls]
    return frame.assign(part="norm", ns=ns, launches=1, macs=None, busy_ns=ns, traced_ns=ns, wall_ns=ns)


def test_a_bar_that_would_dwarf_the_others_is_cut_with_its_height_on_it():
    figure, note = stacked(history([850.0, 90.0, 80.0, 82.0, 81.0]), "class_ms")
    figure = checked(figure)
    assert figure.layout.yaxis.range[1] == pytest.approx(1.3 * 90)
    assert [item.text for item in figure.layout.annotations if "▲" in item.text] == ["▲ 850"]
    assert "cut" in note
    figure, note = stacked(history([200.0, 90.0, 80.0]), "class_ms")
    assert (checked(figure).layout.yaxis.range, note) == (None, "")
    figure, _ = stacked(history([850.0, 840.0, 830.0, 80.0]), "class_ms")  # the rule, not the exception
    assert checked(figure).layout.yaxis.range is None
