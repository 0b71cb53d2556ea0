"""Attributed time per launch in, kernel classes with their splits, symbols and multiply-accumulates out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .classes import UNCLASSIFIED, Rule, SymbolClass, classify_all
from .events import Int64, KernelSum, Launches, OperationLabel, Trace
from .record import ClassTime, Split
from .symbols import function_name, readable

MAX_SPLITS = 40
"""Splits kept per class, most time first; the rest is one split named OTHER, so that the sum stays the class's time."""
MAX_SYMBOLS = 12
OTHER = "other shapes"

Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Columns, one row for the launches that are shown together; sorted by class, then most time first."""

    kernel_class: Index
    first: Index
    """A row of the selection that belongs to the group."""
    ns: Index
    launches: Index

    def of(self, kernel_class: int) -> _Groups:
        rows = slice(*np.searchsorted(self.kernel_class, [kernel_class, kernel_class + 1]))
        return _Groups(self.kernel_class[rows], self.first[rows], self.ns[rows], self.launches[rows])


def class_times(
    trace: Trace, rows: NDArray[np.intp], attributed: Int64, rules: tuple[Rule, ...] | None, *, label_wins: bool
) -> tuple[ClassTime, ...]:
    """Classes of the selected launches, most time first; ``attributed`` holds their ns, row for row.

    The symbol decides. Where its rule says that it is generic (a cuBLAS GEMM) or no rule knows it, the engine's label of
    the operation decides, if there is one; with ``label_wins`` the label always does.
    """
    assert trace.launches is not None
    name = trace.launches.name[rows].astype(np.int64)
    operation = _operations(trace.launches, rows)
    by_name = _classify_used(trace.names, name, rules)
    names, kernel_class = _class_of_launch(trace, by_name, name, operation, label_wins)
    keys = _split_keys(trace, by_name, rows, name, operation)
    groups = _group(kernel_class, keys, attributed)
    macs = _credited(trace.operations, names, kernel_class, operation)
    symbols = _symbols(trace.names, kernel_class, name, attributed, len(names))
    result = []
    for index, class_name in enumerate(names):
        mine = groups.of(index)
        if mine.first.size == 0:
            continue
        splits = _splits(trace, by_name, rows, mine, name, operation, class_name, macs[index])
        result.append(
            ClassTime(
                name=class_name,
                ns=int(mine.ns.sum()),
                launches=int(mine.launches.sum()),
                macs=_sum(trace.operations[op].macs for op in macs[index]),
                bytes=_sum(trace.operations[op].bytes for op in macs[index]),
                splits=splits,
                symbols=symbols[index],
            )
        )
    return tuple(sorted(result, key=lambda item: (-item.ns, item.name)))


def launch_classes(
    trace: Trace, rows: NDArray[np.intp], rules: tuple[Rule, ...] | None, *, label_wins: bool
) -> tuple[list[str], Index]:
    """Names of classes, and for each selected launch the place of its class among them; the rules are ``class_times``'s."""
    assert trace.launches is not None
    name = trace.launches.name[rows].astype(np.int64)
    by_name = _classify_used(trace.names, name, rules)
    return _class_of_launch(trace, by_name, name, _operations(trace.launches, rows), label_wins)


def _classify_used(names: tuple[str, ...], used: Index, rules: tuple[Rule, ...] | None) -> tuple[SymbolClass, ...]:
    """Answers by index of ``names``. Ranges share the table, and a trace may name each of its operators apart."""
    found = np.unique(used).tolist()
    answers = dict(zip(found, classify_all(tuple(names[index] for index in found), rules), strict=True))
    unused = SymbolClass(UNCLASSIFIED)
    return tuple(answers.get(index, unused) for index in range(len(names)))


def class_sums(sums: tuple[KernelSum, ...], rules: tuple[Rule, ...] | None = None) -> tuple[ClassTime, ...]:
    """Classes of a trace that knows only sums: summed time, since without a timeline overlap cannot be seen."""
    by_class: dict[str, list[KernelSum]] = {}
    for row, answer in zip(sums, classify_all(tuple(row.name for row in sums), rules), strict=True):
        by_class.setdefault(answer.name, []).append(row)
    classes = []
    for class_name, rows in by_class.items():
        rows = sorted(rows, key=lambda row: (-row.total_ns, row.name))
        symbols = tuple(dict.fromkeys(readable(row.name) for row in rows))[:MAX_SYMBOLS]
        classes.append(
            ClassTime(class_name, sum(row.total_ns for row in rows), sum(row.launches for row in rows), symbols=symbols)
        )
    return tuple(sorted(classes, key=lambda item: (-item.ns, item.name)))


def _operations(launches: Launches, rows: NDArray[np.intp]) -> Index:
    if launches.operation is None:
        return np.full(rows.size, -1, dtype=np.int64)
    return launches.operation[rows].astype(np.int64)


def _class_of_launch(
    trace: Trace, by_name: tuple[SymbolClass, ...], name: Index, operation: Index, label_wins: bool
) -> tuple[list[str], Index]:
    labels = [label.kernel_class for label in trace.operations]
    names = list(dict.fromkeys([item.name for item in by_name] + [label for label in labels if label is not None]))
    number = {text: index for index, text in enumerate(names)}
    chosen = np.array([number[item.name] for item in by_name] or [0], dtype=np.int64)[name]
    if labels:
        labelled = np.array([-1 if label is None else number[label] for label in labels] + [-1], dtype=np.int64)[operation]
        open_to_label = np.array([label_wins or item.generic for item in by_name], dtype=np.bool_)[name]
        chosen = np.where(open_to_label & (labelled >= 0), labelled, chosen)
    return names, chosen


def _split_keys(
    trace: Trace, by_name: tuple[SymbolClass, ...], rows: NDArray[np.intp], name: Index, operation: Index
) -> Index:
    """A number that is the same for launches of one split: by operation and shape, or else by symbol and grid."""
    shapes: dict[tuple[object, ...], int] = {}
    of_operation = np.array(
        [shapes.setdefault((op.name, op.m, op.n, op.k, op.quantisation), len(shapes)) for op in trace.operations] + [0],
        dtype=np.int64,
    )[operation]
    parts = {text: index for index, text in enumerate(dict.fromkeys(item.split for item in by_name))}
    part = np.array([parts[item.split] for item in by_name] or [0], dtype=np.int64)[name]
    by_shape = of_operation * max(len(parts), 1) + part
    # By function and not by symbol: variants of one template are one split, as its text says.
    used, place = np.unique(name, return_inverse=True)
    functions: dict[str, int] = {}
    numbers = [functions.setdefault(function_name(trace.names[index]), len(functions)) for index in used.tolist()]
    function = np.array(numbers, dtype=np.int64)[place]
    by_symbol = (function * max(len(parts), 1) + part) * max(rows.size, 1) + _grid_number(trace.launches, rows)
    return np.where(operation >= 0, by_shape * 2, by_symbol * 2 + 1)


def _grid_number(launches: Launches | None, rows: NDArray[np.intp]) -> Index:
    """A number below the count of rows that is the same for equal grids."""
    if launches is None or launches.grid is None or rows.size == 0:
        return np.zeros(rows.size, dtype=np.int64)
    number = np.zeros(rows.size, dtype=np.int64)
    for axis in range(3):
        sizes, which = np.unique(launches.grid[rows, axis], return_inverse=True)
        if sizes.size > 1:
            number = np.unique(number * sizes.size + which, return_inverse=True)[1]
    return number


def _group(kernel_class: Index, keys: Index, attributed: Int64) -> _Groups:
    # Keys are below functions x parts x rows x 2, classes a few hundred: inside int64 for any trace that fits in memory.
    codes = kernel_class * (int(keys.max(initial=0)) + 1) + keys
    _, first, member, launches = np.unique(codes, return_index=True, return_inverse=True, return_counts=True)
    # float64 holds integers exactly to 2^53 ns, 104 days of attributed time.
    ns = np.bincount(member, weights=attributed, minlength=first.size).astype(np.int64)
    order = np.lexsort((first, -ns, kernel_class[first]))
    return _Groups(kernel_class[first][order], first[order], ns[order], launches[order])


def _credited(
    operations: tuple[OperationLabel, ...], names: list[str], kernel_class: Index, operation: Index
) -> list[Index]:
    """Operations whose work each class did: those with a launch in the class that they are labelled with themselves."""
    credited: list[Index] = []
    for index, class_name in enumerate(names):
        seen = np.unique(operation[(kernel_class == index) & (operation >= 0)]) if operations else np.zeros(0, np.int64)
        credited.append(np.array([op for op in seen if operations[op].kernel_class == class_name], dtype=np.int64))
    return credited


def _splits(
    trace: Trace,
    by_name: tuple[SymbolClass, ...],
    rows: NDArray[np.intp],
    groups: _Groups,
    name: Index,
    operation: Index,
    class_name: str,
    credited: Index,
) -> tuple[Split, ...]:
    work: dict[tuple[object, ...], list[int]] = {}
    for op in credited:
        label = trace.operations[op]
        work.setdefault((label.name, label.m, label.n, label.k, label.quantisation), []).append(int(op))
    splits: list[Split] = []
    for first, ns, launches in zip(groups.first, groups.ns, groups.launches, strict=True):
        if len(splits) == MAX_SPLITS:
            splits.append(Split(OTHER, int(groups.ns[MAX_SPLITS:].sum()), int(groups.launches[MAX_SPLITS:].sum())))
            break
        part = by_name[name[first]].split
        op = int(operation[first])
        if op < 0:
            splits.append(Split(_symbol_split(trace, rows[first], int(name[first]), part), int(ns), int(launches)))
            continue
        label = trace.operations[op]
        mine = [] if part else work.get((label.name, label.m, label.n, label.k, label.quantisation), [])
        layers = {trace.operations[other].layer for other in mine}
        splits.append(
            Split(
                operation=f"{label.name}, {part}" if part else label.name,
                ns=int(ns),
                launches=int(launches),
                layer=layers.pop() if len(layers) == 1 else None,
                m=label.m,
                n=label.n,
                k=label.k,
                quantisation=label.quantisation,
                macs=_sum(trace.operations[other].macs for other in mine),
                bytes=_sum(trace.operations[other].bytes for other in mine),
            )
        )
    return tuple(splits)


def _symbol_split(trace: Trace, row: np.intp, name: int, part: str) -> str:
    text = function_name(trace.names[name]) + (f", {part}" if part else "")
    if trace.launches is None or trace.launches.grid is None:
        return text
    return f"{text}, grid {'x'.join(str(int(size)) for size in trace.launches.grid[row])}"


def _symbols(
    names: tuple[str, ...], kernel_class: Index, name: Index, attributed: Int64, classes: int
) -> list[tuple[str, ...]]:
    codes = kernel_class * max(len(names), 1) + name
    found, member = np.unique(codes, return_inverse=True)
    ns = np.bincount(member, weights=attributed, minlength=found.size)
    listed: list[list[tuple[float, str]]] = [[] for _ in range(classes)]
    for code, time in zip(found, ns, strict=True):
        listed[int(code) // max(len(names), 1)].append((-float(time), readable(names[int(code) % max(len(names), 1)])))
    return [tuple(dict.fromkeys(text for _, text in sorted(item)))[:MAX_SYMBOLS] for item in listed]


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum, or None where there is nothing to add or a part is not known."""
    known = list(values)
    return sum(value for value in known if value is not None) if known and None not in known else None
