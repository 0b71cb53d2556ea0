"""Kernel symbols in one readable form: the function's qualified name with its template arguments.

CUPTI hands out Itanium-mangled names, nsys and kineto demangled ones, each with its own dress (casts before template
literals, ``<unnamed>``, the return type, the parameters). A class must not depend on which tool saw the kernel, nor on a
C++ runtime being there, so the part of the mangling that carries the name is decoded here.
Source: Itanium C++ ABI, section 5.1 (External Names), https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .mangling import MangledNameError, decode

_ANONYMOUS = "(anonymous namespace)"
_CAST = re.compile(r"\((?:unsigned |signed )?(?:int|long|long long|short|char)\)(?=-?\d)")
_UNSIGNED_SUFFIX = re.compile(r"(?<=\d)u?l{0,2}(?=[,>)\s])")
_LENGTH = re.compile(r"\d{1,6}")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@lru_cache(maxsize=65536)
def readable(symbol: str) -> str:
    """``symbol`` as ``namespace::function<arguments>``, without return type and parameters. Never raises.

    A mangled name outside the decoded part of the grammar gives its identifiers joined by ``::``: still a name that
    rules can match, though its arguments are not in their brackets.
    """
    if symbol.startswith("_Z"):
        try:
            return _tidy(decode(symbol))
        except MangledNameError:
            return "::".join(_identifiers(symbol)) or symbol
    return _tidy(_strip(symbol.replace("<unnamed>", _ANONYMOUS)))


def function_name(symbol: str) -> str:
    """The bare function name: ``mul_mat_q`` of either form of llama.cpp's matrix product."""
    name = readable(symbol)
    depth = 0
    cut = 0
    for position, character in enumerate(name):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == ":" and depth == 0:
            cut = position + 1
    match = _IDENTIFIER.match(name, cut)
    return match.group(0) if match else name


def _tidy(name: str) -> str:
    name = _CAST.sub("", name).replace("(bool)0", "false").replace("(bool)1", "true")
    name = re.sub(r"\s+>", ">", name).replace(" *", "*").replace(" &", "&").replace("operator ()", "operator()")
    return _UNSIGNED_SUFFIX.sub("", name)


def _strip(symbol: str) -> str:
    """Cut the parameters and the return type off a demangled name; a plain C name passes unchanged."""
    text = symbol.replace(_ANONYMOUS, "\0")
    depth = 0
    end, space = len(text), -1
    for position, character in enumerate(text):
        if character == "(" and depth == 0 and not text[:position].rstrip().endswith("operator"):
            end = position
            break
        if character in "<([{":
            depth += 1
        elif character in ">)]}" and text[position - 1 : position] != "-":
            depth -= 1
        elif character == " " and depth == 0:
            space = position
    if end == len(text) and "<" not in text:
        return symbol
    return text[space + 1 : end].replace("\0", _ANONYMOUS) or symbol


def _identifiers(mangled: str) -> list[str]:
    found: list[str] = []
    position = 2
    while match := _LENGTH.search(mangled, position):
        length = int(match.group(0))
        text = mangled[match.end() : match.end() + length]
        if len(text) == length and _IDENTIFIER.fullmatch(text):
            found.append(text)
            position = match.end() + length
        else:
            position = match.end()
    return found
