"""Kernel classes by ordered rules on the symbol. The rules are data: ``kernel_classes.toml``, a user's file before it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import UserFacingError
from .symbols import readable

UNCLASSIFIED = "unclassified"
BUILT_IN_RULES = Path(__file__).with_name("kernel_classes.toml")

GGML_TYPES = {
    0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 9: "q8_1", 10: "q2_K", 11: "q3_K",
    12: "q4_K", 13: "q5_K", 14: "q6_K", 15: "q8_K", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs", 19: "iq1_s", 20: "iq4_nl",
    21: "iq3_s", 22: "iq2_s", 23: "iq4_xs", 24: "i8", 25: "i16", 26: "i32", 27: "i64", 28: "f64", 29: "iq1_m", 30: "bf16",
    34: "tq1_0", 35: "tq2_0", 39: "mxfp4", 40: "nvfp4", 41: "q1_0", 42: "q2_0",
}  # fmt: skip
"""ggml's type ids, which are template arguments of its kernels. Source: enum ggml_type in ggml/include/ggml.h."""

_TYPE_NAMES = {
    "float": "f32", "__half": "f16", "half": "f16", "__half2": "f16", "half2": "f16", "nv_bfloat16": "bf16",
    "__nv_bfloat16": "bf16", "nv_bfloat162": "bf16", "__nv_bfloat162": "bf16", "i8": "int8", "s8": "int8", "imma": "int8",
    "fp16": "f16", "hmma": "f16", "e4m3": "fp8", "e5m2": "fp8", "s1688": "tf32", "h": "f16", "s": "f32", "d": "f64",
    "c": "complex", "z": "complex",
}  # fmt: skip
_NVJET_TYPES = {"h": "f16", "t": "bf16", "s": "f32", "q": "fp8", "o": "fp8", "i": "int8", "d": "f64"}
"""First letter after ``nvjet_`` is the type of the first operand, in cuBLASLt's kernels since CUDA 12.8 (observed)."""


class RulesError(UserFacingError):
    """A rules file that cannot be used. Its text is the one line the user sees."""


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: re.Pattern[str]
    kernel_class: str
    """May hold ``{type}``."""
    split: str = ""
    generic: bool = False
    """The symbol does not say what the work was for: the engine's label of the operation wins."""


@dataclass(frozen=True, slots=True)
class SymbolClass:
    """What the rules say of one symbol."""

    name: str
    split: str = ""
    generic: bool = True


_MATCHED_CHARACTERS = 4096
"""Of a symbol; what it is stands at its start, and a hostile one must not keep the patterns busy."""
_NOTHING = SymbolClass(UNCLASSIFIED)


def load_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of one TOML file, in order. Raises RulesError naming the file and the rule, or a syntax error's line."""
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise RulesError(f"{path}: cannot be read ({error.strerror}); name a rules file in TOML") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulesError(f"{path}: not TOML: {error}") from error
    entries = table.get("rule")
    if set(table) != {"rule"} or not isinstance(entries, list):
        raise RulesError(f"{path}: expected [[rule]] tables and nothing else, seen {sorted(table) or 'nothing'}")
    return tuple(rule for number, entry in enumerate(entries, 1) for rule in _rules_of(entry, f"{path}: rule {number}"))


@lru_cache(maxsize=1)
def built_in_rules() -> tuple[Rule, ...]:
    """The rules that ship with the suite."""
    return load_rules(BUILT_IN_RULES)


def rules_with(user_file: Path | None) -> tuple[Rule, ...]:
    """The user's rules first, then the built-in ones. Raises RulesError."""
    return load_rules(user_file) + built_in_rules() if user_file else built_in_rules()


def classify(symbol: str, rules: tuple[Rule, ...] | None = None) -> str:
    """The kernel class of a symbol in either form, mangled or demangled; "unclassified" where no rule matches."""
    return classify_symbol(symbol, rules).name


def classify_all(symbols: tuple[str, ...], rules: tuple[Rule, ...] | None = None) -> tuple[SymbolClass, ...]:
    """One answer a symbol. A trace holds each name once, so this is not a loop over launches."""
    return tuple(classify_symbol(symbol, rules) for symbol in symbols)


def classify_symbol(symbol: str, rules: tuple[Rule, ...] | None = None) -> SymbolClass:
    """The class of a symbol with what the rule says beside it."""
    return _by_built_in_rules(symbol) if rules is None or rules is built_in_rules() else _by_rules(symbol, rules)


@lru_cache(maxsize=65536)
def _by_built_in_rules(symbol: str) -> SymbolClass:
    return _by_rules(symbol, built_in_rules())


def _by_rules(symbol: str, rules: tuple[Rule, ...]) -> SymbolClass:
    name = readable(symbol)[:_MATCHED_CHARACTERS]
    for rule in rules:
        match = rule.pattern.search(name)
        if match:
            return SymbolClass(_fill(rule.kernel_class, match), rule.split, rule.generic)
    return _NOTHING


def _fill(template: str, match: re.Match[str]) -> str:
    if "{type}" not in template:
        return template
    groups = match.groupdict()
    letter = groups.pop("nvjet", None)
    if letter is not None:
        kind = _NVJET_TYPES.get(letter, "")
    else:
        text = next((value for key, value in groups.items() if key.startswith("type") and value), "")
        kind = GGML_TYPES.get(int(text), f"ggml type {text}") if text.isdigit() else _TYPE_NAMES.get(text, text)
    return template.replace("{type}", kind).strip()


def _rules_of(entry: Any, where: str) -> list[Rule]:
    if not isinstance(entry, dict):
        raise RulesError(f"{where}: expected a table, seen {type(entry).__name__}")
    unknown = sorted(set(entry) - {"symbols", "class", "split", "generic"})
    if unknown:
        raise RulesError(f"{where}: unknown key {unknown[0]!r}; a rule has symbols, class, split, generic")
    symbols, name = entry.get("symbols"), entry.get("class")
    symbols = [symbols] if isinstance(symbols, str) else symbols
    if not isinstance(symbols, list) or not symbols or not all(isinstance(pattern, str) for pattern in symbols):
        raise RulesError(f"{where}: symbols must be a regular expression or a list of them, seen {symbols!r}")
    if not isinstance(name, str) or not name.strip():
        raise RulesError(f"{where}: class must be a name, seen {name!r}")
    split, generic = entry.get("split", ""), entry.get("generic", False)
    if not isinstance(split, str) or not isinstance(generic, bool):
        raise RulesError(f"{where}: split must be a text and generic true or false, seen {split!r}, {generic!r}")
    return [Rule(_compile(pattern, name, where), name, split, generic) for pattern in symbols]


def _compile(pattern: str, name: str, where: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise RulesError(f"{where}: {pattern!r} is not a regular expression: {error}") from error
    if "{type}" in name and not any(group.startswith("type") or group == "nvjet" for group in compiled.groupindex):
        raise RulesError(f"{where}: class {name!r} needs a group (?P<type>...) in {pattern!r}")
    return compiled
