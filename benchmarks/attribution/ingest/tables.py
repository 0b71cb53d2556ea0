"""Tables that tools print for people: CSV, columns under dashes, boxes and Markdown, with other text around them.

Cells stay Arrow strings until a whole column is converted at once.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..events import Int64, TraceError

NS_PER_UNIT = {
    "": 1, "ns": 1, "nsec": 1, "nsecond": 1, "us": 10**3, "usec": 10**3, "μs": 10**3, "µs": 10**3, "usecond": 10**3,
    "ms": 10**6, "msec": 10**6, "msecond": 10**6, "s": 10**9, "sec": 10**9, "second": 10**9,
}  # fmt: skip
_UNIT = re.compile(r"\(([^()%]*)\)\s*$")


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    columns: dict[str, Any]
    """Arrow string arrays by header name."""
    rows: int
    where: str

    def find(self, *stems: str) -> str | None:
        """The first column whose header begins with one of the stems, spaces and case set aside."""
        for stem in stems:
            for name in self.header:
                if name.replace(" ", "").lower().startswith(stem.replace(" ", "").lower()):
                    return name
        return None

    def strings(self, name: str) -> list[str]:
        return [value or "" for value in self.columns[name].to_pylist()]

    def integers(self, name: str, factor: int = 1) -> tuple[Int64, Any]:
        """Numbers times ``factor`` rounded to integers, and where there was one. Raises TraceError for other text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = pc.utf8_trim_whitespace(self.columns[name])
        present = pc.fill_null(pc.not_equal(cells, ""), False)
        plain = pc.if_else(present, pc.replace_substring(cells, ",", ""), "0")
        try:
            exact = pc.multiply(plain.cast(pa.decimal256(50, 12)), pa.scalar(Decimal(factor), pa.decimal256(11, 0)))
            whole = pc.round(exact, ndigits=0, round_mode="half_to_even").cast(pa.decimal256(50, 0)).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise TraceError(f"{self.where}: column {name!r} holds something that is no number ({error})") from error
        return whole.to_numpy(zero_copy_only=False), present.to_numpy(zero_copy_only=False)

    def times(self, name: str) -> Int64:
        """A column of times as integer ns, by the unit in its header. Raises TraceError where a cell is empty."""
        match = _UNIT.search(name)
        unit = (match[1] if match else "").strip().lower()
        if unit not in NS_PER_UNIT:
            raise TraceError(f"{self.where}: column {name!r} has an unknown unit; expected ns, us, ms or s")
        values, present = self.integers(name, NS_PER_UNIT[unit])
        if not present.all():
            raise TraceError(f"{self.where}: column {name!r} is empty in {int((~present).sum()):,} rows")
        return values


def find_tables(text: str, header: re.Pattern[str], path: Path) -> list[Table]:
    """Every table whose header line the pattern matches (it is searched with ^ and $ at line ends)."""
    return [_table(text, match, path) for match in header.finditer(text)]


def _table(text: str, match: re.Match[str], path: Path) -> Table:
    line = match.group().rstrip("\r")
    where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
    before = text[text.rfind("\n", 0, max(match.start() - 1, 0)) + 1 : match.start()].strip()
    body = text[match.end() :].lstrip("\r").removeprefix("\n")
    following = body.split("\n", 1)[0].rstrip()
    if before.startswith("+-"):
        return _by_position(
            line, body, [i for i, letter in enumerate(before) if letter == "+"], where, indent=line.index("|")
        )
    if re.fullmatch(r"\s*\|[\s:|-]+\|?\s*", following):
        return _markdown(line, body, where)
    if re.fullmatch(r"\s*-{2,}[\s-]*", following):
        edges = [hit.start() for hit in re.finditer(r"-+", following)]
        return _by_position(line, body.split("\n", 1)[-1], [edge - 1 for edge in edges], where, indent=-1)
    return _csv(line, body, where)


def _csv(line: str, body: str, where: str) -> Table:
    import pyarrow as pa
    import pyarrow.csv

    end = re.search(r"^\s*$", body, re.MULTILINE)
    block = line + "\n" + (body[: end.start()] if end else body)
    header = _distinct(next(iter(_csv_rows(line))), where)
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(block.encode()),
            read_options=pyarrow.csv.ReadOptions(column_names=header, skip_rows=1),
            convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string())),
        ).combine_chunks()
    except pa.ArrowInvalid as error:
        raise TraceError(f"{where}: a row does not fit the header ({error}); the file is cut or was edited") from error
    columns = {name: _one_chunk(table[name]) for name in header}
    return Table(tuple(header), columns, table.num_rows, where)


def _csv_rows(text: str) -> list[list[str]]:
    import csv

    return [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text))]


def _distinct(header: list[str], where: str) -> list[str]:
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise TraceError(f"{where}: column {twice!r} occurs {header.count(twice)} times; the report was edited")
    return header


def _one_chunk(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if column.num_chunks else pa.array([], pa.string())


def _by_position(line: str, body: str, edges: list[int], where: str, indent: int) -> Table:
    """Cells between fixed edges. A kernel's name may hold any sign, and its last column may overhang."""
    boxed = indent >= 0
    lines: list[str] = []
    for row in body.split("\n"):
        bare = row.strip()
        if not bare or (boxed and not bare.startswith(("|", "+"))):
            break
        if not (boxed and bare.startswith("+")):
            lines.append(row.rstrip("\r"))
    spans = list(pairwise(edges)) if boxed else list(zip(edges, [*edges[1:], 1 << 30], strict=True))

    def cells(text: str) -> list[str]:
        return [text[max(low + 1, 0) : high].strip() for low, high in spans]

    return _from_rows(
        cells(line[indent:] if boxed else line), [cells(row.strip() if boxed else row) for row in lines], where
    )


def _markdown(line: str, body: str, where: str) -> Table:
    lines: list[str] = []
    for row in body.split("\n")[1:]:
        if not row.strip().startswith("|"):
            break
        lines.append(row)

    def cells(text: str) -> list[str]:
        return [cell.strip() for cell in text.strip().strip("|").split("|")]

    return _from_rows(cells(line), [cells(row) for row in lines], where)


def _from_rows(header: list[str], rows: list[list[str]], where: str) -> Table:
    import pyarrow as pa

    _distinct(header, where)
    for row in rows:
        if len(row) != len(header):
            raise TraceError(f"{where}: a row has {len(row)} cells under {len(header)} headers; the file was cut or edited")
    columns = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(header)}
    return Table(tuple(header), columns, len(rows), where)


def column_or(table: Table, stem: str, default: int) -> Int64:
    """An integer column by the start of its header, ``default`` where a cell is empty or the column is not there."""
    name = table.find(stem)
    if name is None:
        return np.full(table.rows, default, dtype=np.int64)
    values, present = table.integers(name)
    out: Int64 = np.where(present, values, default)
    return out
