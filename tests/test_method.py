"""docs/method.md and the code hold the same constants, in both directions."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
METHOD = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([A-Z][A-Z0-9_]+) \| (\S+) \| ([\w.]+) \|$", METHOD, flags=re.MULTILINE)
CORE = sorted((ROOT / "benchmarks" / "attribution").glob("*.py"))


@pytest.mark.parametrize(("name", "value", "module"), ROWS)
def test_the_prose_states_what_the_code_does(name, value, module):
    assert getattr(importlib.import_module(module), name) == float(value)


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_every_rules_number_of_the_core_is_in_the_prose(path):
    """All public numbers but those that only say how many names a screen lists."""
    listed = {(module, name) for name, _, module in ROWS}
    module = f"benchmarks.attribution.{path.stem}"
    rules = [name for name in _public_numbers(path) if not name.startswith(("LISTED", "SHOWN"))]
    missing = [name for name in rules if (module, name) not in listed]
    assert not missing, f"add {', '.join(missing)} to the table of constants in docs/method.md"


def _public_numbers(path: Path) -> list[str]:
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        for target in targets:
            if isinstance(target, ast.Name) and target.id.isupper() and not target.id.startswith("_"):
                value = getattr(importlib.import_module(f"benchmarks.attribution.{path.stem}"), target.id)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    names.append(target.id)
    return names


def test_modules_named_in_the_prose_exist():
    for named in re.findall(r"`(attribution/[\w./]+)`", METHOD):
        assert (ROOT / "benchmarks" / named).is_file(), named


def test_constants_named_in_the_sections_are_in_the_table():
    text = METHOD.split("## Constants")[0]
    named = set(re.findall(r"`((?!MINFER_)[A-Z][A-Z0-9]*_[A-Z0-9_]+|CONFIDENCE)`", text))
    assert named <= {name for name, _, _ in ROWS}


def test_the_glossary_has_each_word_once():
    rows = re.findall(r"^\| ([^|]+?) \| ", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    words = rows[2:] if rows[1].startswith("---") else rows[1:]
    assert len(words) == len(set(words))
    assert {"wall", "busy", "gap", "kernel class", "split", "pair", "hidden tax", "recoverable"} <= set(words)
