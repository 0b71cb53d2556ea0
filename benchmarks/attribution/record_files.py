"""Records on the disk: read with every type checked, appended whole or not at all."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .errors import UserFacingError
from .record import RECORD_FORMAT, RECORD_VERSION, Record
from .whole_files import replacing


class RecordError(UserFacingError):
    """A record that cannot be read. Its text is the one line the user sees."""


def record_from_json(text: str, where: str) -> Record:
    """Read one line. ``where`` names the file and line in errors. Raises RecordError."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecordError(f"{where}: not JSON ({error.msg} at column {error.colno}); remove the line") from error
    if not isinstance(data, dict) or data.get("format") != RECORD_FORMAT:
        raise RecordError(f"{where}: not a {RECORD_FORMAT} object; remove the line")
    if data.get("version") not in range(1, RECORD_VERSION + 1):
        raise RecordError(
            f"{where}: record version {data.get('version')!r}, expected 1 to {RECORD_VERSION}; update this checkout"
        )
    try:
        return typing.cast(Record, _reader(Record)(data))
    except _MismatchError:
        return typing.cast(Record, _build(Record, data, where))  # slower by a factor of four, and says what is wrong where


def read_records(path: Path) -> list[Record]:
    """All records of one file, oldest first. Raises RecordError naming the first bad line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [record_from_json(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def append_record(path: Path, record: Record) -> None:
    """Add one record to a file; a crash leaves either the old file or the new one, never half a line."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if old and not old.endswith("\n"):
        old += "\n"
    with replacing(path) as temporary:
        temporary.write_text(old + record.to_json() + "\n", encoding="utf-8")


class _MismatchError(Exception):
    """Something is not of its annotated type."""


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What turns parsed JSON into a value of an annotated type, checking every leaf as ``_build`` does; made once a type.

    It raises _MismatchError without a word: no text is put together for records that are sound."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(kind)
        return _one_of([_reader(option) for option in options if option is not type(None)], type(None) in options)
    if dataclasses.is_dataclass(kind):
        return _object_of(kind)
    if origin is tuple:
        return _tuple_of(_reader(typing.get_args(kind)[0]))
    if origin is dict:
        return _dict_of(_reader(typing.get_args(kind)[1]))

    def leaf(value: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise _MismatchError

    return leaf


def _one_of(options: Sequence[Callable[[Any], Any]], or_none: bool) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value is None and or_none:
            return None
        for option in options:
            try:
                return option(value)
            except _MismatchError:
                continue
        raise _MismatchError

    return read


def _tuple_of(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _MismatchError
        return tuple(map(item, value))

    return read


def _dict_of(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _MismatchError
        return {key: item(element) for key, element in value.items()}

    return read


def _object_of(kind: Any) -> Callable[[Any], Any]:
    readers = {name: _reader(hint) for name, hint in typing.get_type_hints(kind).items()}
    required = {f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING}

    def read(value: Any) -> Any:
        if type(value) is not dict or not value.keys() <= readers.keys() or not required <= value.keys():
            raise _MismatchError
        return kind(**{name: readers[name](item) for name, item in value.items()})

    return read


def _build(kind: Any, value: Any, where: str) -> Any:
    """The same as ``_reader``, slowly: raises RecordError with the place and the name of what is wrong."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(kind)
        if value is None and type(None) in options:
            return None
        errors: list[str] = []
        for option in options:
            if option is type(None):
                continue
            try:
                return _build(option, value, where)
            except RecordError as error:
                errors.append(str(error))
        raise RecordError(errors[0])
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise RecordError(f"{where}: expected a list, seen {type(value).__name__}")
        item = typing.get_args(kind)[0]
        return tuple(_build(item, element, f"{where}[{index}]") for index, element in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise RecordError(f"{where}: expected an object, seen {type(value).__name__}")
        item = typing.get_args(kind)[1]
        return {key: _build(item, element, f"{where}.{key}") for key, element in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise RecordError(f"{where}: expected {kind.__name__}, seen {type(value).__name__} {str(value)[:40]!r}")
    return value


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    """Resolving a class's annotations compiles them: once a class, not once an object."""
    return typing.get_type_hints(kind)


def _build_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise RecordError(f"{where}: expected an object, seen {type(value).__name__}")
    hints = _hints(kind)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise RecordError(f"{where}: unknown field {unknown[0]!r} in {kind.__name__}")
    required = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    missing = [name for name in required if name not in value]
    if missing:
        raise RecordError(f"{where}: missing field {missing[0]!r} of {kind.__name__}")
    return kind(**{name: _build(hints[name], item, f"{where}.{name}") for name, item in value.items()})
