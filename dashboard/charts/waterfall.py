"""From one wall to another: what each class won or cost, with the interval of each change."""

from __future__ import annotations

from benchmarks.attribution.ledger import UNRESOLVED, WORTH_NAMING, Ledger
from benchmarks.attribution.spread import Figure

from ..colours import BETTER, SIDES, UNDECIDED, WORSE
from ..portrait import with_range
from ..text import for_hover
from .axes import style, whiskers
from .chart import Chart

_WALL = "#6B7A90"


def waterfall(
    book: Ledger, before_ns: float, after_ns: float, labels: tuple[str, str], words: dict[str, str] | None = None
) -> Chart:
    """Horizontal, so that names stay readable on a phone: the first wall, each line by size, the second wall. In ms.

    A change is teal where time was won, red where it was lost, grey where its interval holds zero or it is a trifle.
    ``words`` say the kinds of lines otherwise than the ledger does; it is then no matter of better and worse, and the
    colours are the two sides'.
    """
    walls = (Figure(before_ns), Figure(after_ns))
    names, starts, changes, colours, hover = (
        [for_hover(labels[0])],
        [0.0],
        [walls[0]],
        [_WALL],
        [f"{before_ns / 1e6:,.4g} ms"],
    )
    level = before_ns / 1e6
    for line in book.lines:
        names.append(for_hover(line.name))
        starts.append(level)
        changes.append(line.change)
        level += line.change.value / 1e6
        less, more = (BETTER, WORSE) if words is None else SIDES
        # A gap of one trace has no interval: below what is worth naming nobody knows whether it moved.
        trifle = line.change.interval is None and abs(line.change.value) < WORTH_NAMING * before_ns
        colours.append(UNDECIDED if trifle or line.kind == UNRESOLVED else less if line.change.value < 0 else more)
        sides = " → ".join("absent" if side is None else f"{side.value / 1e6:,.4g}" for side in (line.before, line.after))
        hover.append(
            f"{sides} ms: {with_range(line.change.scaled(1e-6), '+,.4g')} ms, {(words or {}).get(line.kind, line.kind)}"
        )
    names.append(for_hover(labels[1]))
    starts.append(0.0)
    changes.append(walls[1])
    colours.append(_WALL)
    hover.append(f"{after_ns / 1e6:,.4g} ms")
    in_ms = [item.scaled(1e-6) for item in changes]
    reach = whiskers(in_ms)
    figure = Chart()
    figure.add_bar(
        y=names,
        x=[item.value for item in in_ms],
        base=starts,
        orientation="h",
        marker={"color": colours},
        error_x=reach,
        customdata=hover,
        hovertemplate="<b>%{y}</b><br>%{customdata}<extra></extra>",
    )
    figure = style(figure, 110 + 27 * len(names), "", legend=False, x_title="ms of the traced wall")
    figure.update_yaxes(autorange="reversed", type="category")
    # Changes far smaller than the walls would be hairlines: the axis then starts shortly before the lowest of them.
    # It holds every interval: one that is cut off at the edge would look like one that ends there.
    levels = [start + item.value for start, item in zip(starts, in_ms, strict=True)]
    span = max(levels) - min(levels)
    if 0 < span < 0.3 * max(levels):
        low = min(level - below for level, below in zip(levels, reach["arrayminus"], strict=True)) - 0.1 * span
        high = max(level + above for level, above in zip(levels, reach["array"], strict=True)) + 0.1 * span
        figure.update_xaxes(range=[max(0.0, min(low, min(levels) - 0.8 * span)), max(high, max(levels) + 0.3 * span)])
    return figure
