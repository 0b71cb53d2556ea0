"""docs/gate.md and docs/method.md say what the code does."""

import argparse
import ast
import re
import shlex
from pathlib import Path
from statistics import quantiles

import pytest

from benchmarks.attribution.statistics import paired, sequential
from benchmarks.attribution.statistics.calibration import read_calibrations
from benchmarks.capture import conditions
from benchmarks.commands import bisect, calibrate, gate
from benchmarks.gate import sampling
from benchmarks.gate.exits import MEANING

ROOT = Path(__file__).resolve().parents[3]
GATE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
METHOD = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")


def test_the_table_of_exit_codes_is_the_codes_own():
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", GATE, flags=re.MULTILINE))
    assert rows == {str(int(code)): meaning for code, meaning in MEANING.items()}


def test_every_command_and_option_in_the_text_is_understood():
    modules = {"gate": gate, "bisect": bisect, "calibrate": calibrate}
    commands = re.findall(r"^python -m benchmarks (.+?)(?:  +#.*)?$", GATE, flags=re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        name, *words = shlex.split(command)
        parser = argparse.ArgumentParser(exit_on_error=False)
        modules[name].add_arguments(parser)
        parser.parse_args(words)
    known = {option for module in modules.values() for option in options(module)}
    assert set(re.findall(r"`(--[a-z-]+)", GATE)) <= known


def options(module):
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return [option for action in parser._actions for option in action.option_strings]


@pytest.mark.parametrize("module", [paired, sequential, sampling, conditions], ids=lambda module: module.__name__)
def test_every_constant_of_the_rule_is_in_the_prose(module):
    rows = set(re.findall(r"^\| ([A-Z_]+) \| \S+ \| ([\w.]+) \|$", METHOD, flags=re.MULTILINE))
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    names = [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]
    numbers = [name for name in names if isinstance(getattr(module, name), int | float)]
    assert numbers
    for name in set(numbers) - {"POLL_SECONDS"}:
        assert (name, module.__name__) in rows
        assert f"`{name}`" in METHOD


def test_the_published_error_rates_are_those_that_are_stored():
    """Each figure of the table, from the line in results/ that it was taken from."""
    section = GATE.split("## Measured error rates")[1]
    stored = read_calibrations(ROOT / "results" / "epyc-2core")
    assert any(all(figure in section for figure in published(one)) for one in stored)


def published(found):
    """The table's cells, made from one calibration."""
    alarms, power, missed = found.false_alarms, found.power(), found.missed()
    yield f"| {alarms.trials} on identical commits | false alarm | {alarms.count} | 0 to {alarms.high * 100:.3g} % | "
    found_one = f"the class is called SLOWER | {power.count} | {power.low * 100:.3g} to 100 % | "
    yield f"| {power.trials} with 3 % in one class | {found_one}"
    yield f"| passed | {missed.count} | 0 to {missed.high * 100:.3g} % | "
    for trials in (found.identical, found.injected()):
        low, middle, high = quantiles(trial.seconds for trial in trials)
        yield f"{middle:.1f} s ({low:.1f} to {high:.1f}), {found.cost(trials)[1]:.0f} pairs"
    yield f"load average {min(found.load_average):.1f} to {max(found.load_average):.1f}"
