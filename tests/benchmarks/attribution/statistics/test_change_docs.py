"""The prose about change points names every constant of the rule, and its runs of last points."""

import ast
from pathlib import Path

import pytest

from benchmarks.attribution.statistics import alarms, change_points, composition, rank_thresholds, shift
from benchmarks.attribution.statistics.alarms import RANK_CHANCE, rank_chance

METHOD = (Path(__file__).resolve().parents[4] / "docs" / "method.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [alarms, change_points, composition, rank_thresholds, shift], ids=lambda m: m.__name__)
def test_every_constant_is_in_the_table(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    names = [target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    numbers = [name for name in names if name[0] != "_" and isinstance(getattr(module, name), int | float)]
    assert numbers
    for name in numbers:
        assert f"| {name} | " in METHOD and f"| {module.__name__} |" in METHOD


def test_what_the_prose_says_of_runs():
    assert (rank_thresholds.RECENT[0], rank_thresholds.RECENT[-1]) == (5, 128)
    assert [rank_chance(recent) for recent in (5, 6, 20)] == pytest.approx(
        [RANK_CHANCE, RANK_CHANCE / 5, RANK_CHANCE * 0.8 / 20]
    )
