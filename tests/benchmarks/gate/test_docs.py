"""docs/gate.md and docs/method.md say what the code does."""

import argparse
import ast
import re
import shlex
from pathlib import Path

import pytest

from benchmarks.attribution.statistics import paired, sequential
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
