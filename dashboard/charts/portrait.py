"""The family portrait of one wall: a bar of classes for each engine, the splits of one class, one layer end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.attribution.record import Decomposition, Split

from ..colours import COPY, GAP_PREFIX, UNCLASSIFIED, ink, stacking_order
from ..text import for_hover
from .axes import style
from .chart import Chart
from .decomposition import hatch_pattern


def parts_of(taken: Decomposition) -> dict[str, int]:
    """Everything that adds up to the wall, in ns, by name."""
    named = {item.name: item.ns for item in taken.classes} | {COPY: taken.copy_ns}
    return named | {GAP_PREFIX + cause: ns for cause, ns in taken.gap_ns.items()}


SMALL_SHARE = 0.003
"""Of every wall drawn: kernel classes below it are drawn as one, or a legend would name twenty that nobody can see."""
OTHERS = "other small classes"


def _folded(walls: Sequence[tuple[dict[str, int], int]]) -> tuple[list[dict[str, int]], list[str]]:
    """The same parts with classes that are small on every wall put together, and their names. Gaps, copies and what no rule
    names always stand by themselves."""
    names = dict.fromkeys(name for named, _ in walls for name in named)
    small = [
        name
        for name in names
        if not (name.startswith(GAP_PREFIX) or name in (COPY, UNCLASSIFIED))
        and all(named.get(name, 0) < SMALL_SHARE * wall for named, wall in walls)
    ]
    if len(small) < 2:
        return [named for named, _ in walls], []
    folded = []
    for named, _ in walls:
        kept = {name: ns for name, ns in named.items() if name not in small}
        folded.append(kept | {OTHERS: sum(named.get(name, 0) for name in small)})
    return folded, small


def wall_bars(walls: Sequence[tuple[str, Decomposition]], *, share: bool) -> Chart:
    """One horizontal bar a wall, its name above it: ``walls`` holds (label, decomposition). In ms, or in shares of each own
    wall."""
    figure = Chart()
    folded, small = _folded([(parts_of(taken), taken.wall_ns) for _, taken in walls])
    parts = [(label, named, taken.wall_ns) for (label, taken), named in zip(walls, folded, strict=True)]
    for name in stacking_order([name for _, named, _ in parts for name in named]):
        there = [place for place, (_, named, _) in enumerate(parts) if named.get(name)]
        if not there:
            continue
        about = f" ({', '.join(small)})" if name == OTHERS else ""
        values, hover = [], []
        for label, named, wall in (parts[place] for place in there):
            ns = named[name]
            values.append(100 * ns / wall if share else ns / 1e6)
            said = f"{for_hover(name + about)}: {ns / 1e6:,.4g} ms, {100 * ns / wall:.3g} % of wall"
            hover.append(f"<b>{for_hover(label)}</b><br>{said}")
        colour = ink(name)
        figure.add_bar(
            y=there,
            x=values,
            name=for_hover(name),
            orientation="h",
            width=0.5,
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
            marker={"color": colour.colour, "pattern": hatch_pattern(colour.hatch)},
        )
    for place, (label, _, wall) in enumerate(parts):
        text = for_hover(label) if share else f"{for_hover(label)}: {wall / 1e6:,.4g} ms"
        figure.add_annotation(x=0, y=place - 0.27, text=text, xanchor="left", yanchor="bottom", font={"size": 12})
    figure.update_layout(barmode="stack")
    title = "Share of wall (%)" if share else "Traced wall (ms)"
    figure = style(figure, 170 + 58 * len(walls), "", x_title=title)
    figure.update_yaxes(range=[len(parts) - 0.6, -0.75], showticklabels=False, showgrid=False)
    return figure


def split_bars(splits: Sequence[tuple[str, Split]], by: str) -> Chart:
    """Time by "layer" or by "operation", coloured by class. ``splits`` holds (class, split)."""
    sums: dict[str, dict[str, int]] = {}
    places: dict[str, tuple[int, str]] = {}
    for name, split in splits:
        key = split.operation if by == "operation" else "no one layer" if split.layer is None else str(split.layer)
        places[key] = (1 << 30 if split.layer is None and by == "layer" else split.layer or 0, key)
        sums.setdefault(name, {}).setdefault(key, 0)
        sums[name][key] += split.ns
    if by == "operation":
        totals = {key: sum(parts.get(key, 0) for parts in sums.values()) for key in places}
        order = sorted(places, key=lambda key: -totals[key])
    else:
        order = sorted(places, key=lambda key: places[key])
    figure = Chart()
    flat = by == "operation"  # names of operations stay readable on a phone only when they stand beside their bars
    for name in stacking_order(list(sums)):
        present = [key for key in order if sums[name].get(key)]  # a bar of no length costs as much to draw as any
        keys, values = [for_hover(key) for key in present], [sums[name][key] / 1e6 for key in present]
        figure.add_bar(
            x=values if flat else keys,
            y=keys if flat else values,
            orientation="h" if flat else "v",
            name=for_hover(name),
            marker={"color": ink(name).colour},
            hovertemplate=for_hover(name)
            + (": %{y}, %{x:,.4g} ms" if flat else ": layer %{x}, %{y:,.4g} ms")
            + "<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.2)
    named = [for_hover(key) for key in order]
    if flat:
        figure = style(figure, 170 + 24 * len(order), "", x_title="Time (ms)")
        figure.update_yaxes(type="category", categoryarray=named[::-1])
    else:
        figure = style(figure, 400, "Time (ms)", x_title="Layer")
        figure.update_xaxes(type="category", categoryarray=named)
    return figure


def average_launches(splits: Sequence[tuple[str, Split]]) -> list[tuple[str, Split]]:
    """One average launch of each operation that runs in several layers: what a record that merged its layers still tells."""
    several = [(name, split) for name, split in splits if split.launches > 1]
    return [(name, replace(split, ns=round(split.ns / split.launches), launches=1)) for name, split in several]


def layer_timeline(splits: Sequence[tuple[str, Split]]) -> Chart:
    """Operations end to end, in the order of ``splits``, which holds (class, split)."""
    figure = Chart()
    start = 0.0
    for name, split in splits:
        length = split.ns / 1e3
        shape = f" {split.m}×{split.n}×{split.k}" if split.k else ""
        each = f"{split.launches} launches" if split.launches != 1 else "1 launch"
        figure.add_bar(
            base=[start],
            x=[length],
            y=[for_hover(split.operation)],
            orientation="h",
            name=for_hover(name),
            legendgroup=for_hover(name),
            showlegend=for_hover(name) not in {trace["legendgroup"] for trace in figure.data},
            marker={"color": ink(name).colour},
            hovertemplate=f"<b>{for_hover(split.operation)}</b>{shape}<br>{for_hover(name)}, {each}<br>"
            f"{length:,.4g} µs from {start:,.4g} µs<extra></extra>",
        )
        start += length
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure = style(figure, 150 + 26 * len({split.operation for _, split in splits}), "", x_title="µs of device time")
    figure.update_yaxes(autorange="reversed", type="category")
    return figure
