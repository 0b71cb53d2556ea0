"""The prose about change points names every constant of the rule, and its runs of last points."""

import ast
import json
import re
from pathlib import Path

import pytest

from benchmarks.attribution.statistics import alarms, change_points, composition, rank_thresholds, shift
from benchmarks.attribution.statistics.alarms import RANK_CHANCE, rank_chance
from tools.study_detectors import OURS
from tools.study_report import render

ROOT = Path(__file__).resolve().parents[4]
DETECTORS = ROOT / "docs" / "detectors"
METHOD = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")


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


def test_the_report_is_the_study_and_the_prose_quotes_it():
    study = json.loads((DETECTORS / "study.json").read_text(encoding="utf-8"))
    report = (DETECTORS / "README.md").read_text(encoding="utf-8")
    assert report == render(study)
    measured = METHOD.split("**Measured** (`detectors/README.md`")[1].split("**Decisions**")[0]
    quoted = re.findall(r"\d+\.\d\d", measured)
    assert len(quoted) == 23
    for figure in quoted:
        assert f" {figure} % (" in report, figure


def test_the_bars_hold_with_their_intervals():
    study = json.loads((DETECTORS / "study.json").read_text(encoding="utf-8"))
    bar = ("gaussian", "student t3", "two levels")
    quiet = [row for row in study["quiet"] if row["detector"] == OURS and row["noise"] in bar]
    assert len(quiet) == 6 and all(row["high"] < 0.01 for row in quiet)
    steps = [row for row in study["steps"] if row["detector"] == OURS and row["history"] >= 50]
    assert len(steps) == 12 and all(row["share"] >= 0.9 for row in steps)
    correlated = [row for row in study["correlated"] if row["detector"] == OURS]
    assert len(correlated) == 4 and all(row["share"] <= 0.05 for row in correlated)
