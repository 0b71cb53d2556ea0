"""An answer for a terminal: a table with bars, the checks, what was assumed."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from ..attribution.attribute import Answer, DeviceAnswer
from ..attribution.compare import Comparison
from . import comparison, portrait

EIGHTHS = " ▏▎▍▌▋▊▉█"
BAR = 24
NAME = 30


def render(
    answers: Sequence[Answer],
    comparisons: Sequence[Comparison] = (),
    *,
    width: int | None = None,
    unicode_bars: bool | None = None,
) -> str:
    """The answers, then what they say of each other; lines that can be cut are no longer than the terminal."""
    width = width or max(shutil.get_terminal_size((120, 40)).columns, 80)
    if unicode_bars is None:
        unicode_bars = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    parts = [_answer(answer, width, unicode_bars) for answer in answers]
    parts += [_comparison(item, answers, width) for item in comparisons]
    text = "\n\n".join(parts)
    return text if unicode_bars else text.replace("…", "~")


def _answer(answer: Answer, width: int, unicode_bars: bool) -> str:
    lines = [f"{answer.path}: {answer.format}", f"window: {answer.window.sentence}"]
    for device in answer.devices:
        lines += [
            "",
            *textwrap.wrap(portrait.headline(device), width, subsequent_indent="  "),
            *_table(device, unicode_bars),
        ]
        copies = portrait.copy_lines(device)
        lines += ["  copies, overlapped or not:", *(f"    {line}" for line in copies)] if copies else []
        ranges = portrait.range_rows(device)
        lines += ["", *(_cut(line, width) for line in _columns(portrait.RANGE_HEADERS, ranges))] if ranges else []
        queue = portrait.queue_lines(device)
        lines += ["  what could be won:", *(_cut(f"    {line}", width) for line in queue)] if queue else []
    if answer.bench_results:
        lines += ["", *_columns(portrait.BENCH_HEADERS, portrait.bench_rows(answer.bench_results))]
    if answer.profiles:
        lines += ["", *_columns(portrait.PROFILE_HEADERS, portrait.profile_rows(answer.profiles))]
    if answer.all_checks:
        lines += ["", "checks", *(part for line in _checks(answer) for part in _check_lines(line, width))]
    if answer.notes:
        lines += [
            "",
            "notes",
            *(
                line
                for note in answer.notes
                for line in textwrap.wrap(note, width, initial_indent="  ", subsequent_indent="    ")
            ),
        ]
    return "\n".join(lines)


def _table(device: DeviceAnswer, unicode_bars: bool) -> list[str]:
    work = portrait.has_work(device)
    of = "wall" if device.decomposition is not None else "summed"
    header = f"  {'class':<{NAME}} {'':<{BAR}} {'ms':>11} {'% ' + of:>9} {'% busy':>8} {'launches':>9}"
    header += f" {'GMAC':>10} {'us/GMAC':>9}" if work else ""
    lines, places = [header], portrait.decimals(device)
    for row in portrait.rows(device):
        line = f"  {_cut(row.label, NAME):<{NAME}} {bar(row.share or 0.0, unicode_bars)} {row.ns / 1e6:>11,.{places}f}"
        line += f" {100 * (row.share or 0):>9.1f} {portrait.number(_hundred(row.share_of_busy), 1):>8}"
        line += f" {'' if row.launches is None else format(row.launches, ','):>9}"
        if work:
            line += f" {portrait.number(row.gmac, 1):>10} {portrait.number(row.us_per_gmac, 3):>9}"
        lines.append(line.rstrip())
    return lines


def _comparison(item: Comparison, answers: Sequence[Answer], width: int) -> str:
    lines = [
        f"comparison, device {item.a_device} of a = {answers[0].path}",
        f"       with device {item.b_device} of b = {answers[1].path}",
        f"  {'class':<{NAME}} {'unit':>7} {'a units':>12} {'b units':>12} {'a us/unit':>11} {'b us/unit':>11} {'b/a':>7}",
    ]
    for row in comparison.rows(item):
        lines.append(
            f"  {_cut(row.name, NAME):<{NAME}} {row.unit:>7} {row.a_units:>12} {row.b_units:>12} {row.a_cost:>11}"
            f" {row.b_cost:>11} {row.ratio:>7}"
        )
    lines += [f"  {line}" for line in comparison.missing(item)]
    if item.ledger is not None:
        lines += ["", f"  {comparison.ledger_title(item.ledger)}"]
        lines.append(f"  {'part of the wall':<{NAME}} {'a us':>12} {'b us':>12} {'change us':>12}  ")
        for name, before, after, change, kind in comparison.ledger_rows(item.ledger):
            lines.append(f"  {_cut(name, NAME):<{NAME}} {before:>12} {after:>12} {change:>12}  {kind}")
    lines.append("")
    for check in item.checks:
        text = "; ".join(part for part in (portrait.figure(check), check.detail) if part)
        lines.append(_cut(f"  {portrait.verdict(check):<8} {check.name}" + (f": {text}" if text else ""), width))
    return "\n".join(lines)


def bar(share: float, unicode_bars: bool = True) -> str:
    """A share of 1 fills BAR cells; what is not nothing shows at least its smallest mark."""
    share = min(max(share, 0.0), 1.0)
    if not unicode_bars:
        return ("#" * max(round(share * BAR), 1 if share > 0 else 0)).ljust(BAR)
    eighths = max(round(share * BAR * 8), 1 if share > 0 else 0)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(BAR)


def _checks(answer: Answer) -> list[str]:
    """What did not pass has a line for each device; what passed everywhere has one."""
    several = len(answer.devices) > 1
    lines: list[str] = []
    names = dict.fromkeys(check.name for _, check in answer.all_checks)
    for name in names:
        rows = [(device, check) for device, check in answer.all_checks if check.name == name]
        if all(check.passed for _, check in rows):
            figures = ", ".join(dict.fromkeys(portrait.figure(check) for _, check in rows))
            lines.append(f"  ok       {name}: {figures}")
            continue
        for device, check in rows:
            where = f"device {device}: " if device is not None and several else ""
            text = "; ".join(part for part in (portrait.figure(check), check.detail) if part)
            lines.append(f"  {portrait.verdict(check):<8} {where}{name}: {text}")
    return lines


def _columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Text left in the first column, numbers right in the others."""
    table = [[_cut(row[0], NAME), *row[1:]] for row in (headers, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(headers))]
    lines = []
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _hundred(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _check_lines(line: str, width: int) -> list[str]:
    """A check that passed may be cut at the edge; one that did not says why in full, on as many lines as that takes."""
    if line.startswith("  ok"):
        return [_cut(line, width)]
    return textwrap.wrap(line, width, initial_indent="", subsequent_indent=" " * 11, break_on_hyphens=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
