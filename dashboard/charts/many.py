"""Many series at once: a heatmap of series by commits, and small multiples. many.js draws what is put together here.

Plotly draws neither within a click's 300 ms: a heatmap of 60 by 600 cells costs it 250 ms, 24 pairs of axes 400 ms.
"""

from __future__ import annotations

import base64
import os.path
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ..data import Stretches
from ..text import shortened
from . import component

MOST_COLUMNS = 600
POINTS_A_PANEL = 160
Form = Literal["heatmap", "small multiples"]
# Purple to orange through grey: told apart by colour-blind eyes, and neither end reads as good or bad.
SCALE = ((94, 60, 153), (178, 171, 210), (154, 154, 154), (253, 184, 99), (230, 97, 1))
INK = "#4477AA"


def short_names(names: Sequence[str]) -> list[str]:
    """Names as short as tells them apart: without module and class where that suffices, without the start that all share.

    One that is still too long for an axis loses its middle: what differs stands at the end.
    """
    found = [_own_name(name).removeprefix("track_").removeprefix("time_") for name in names]
    names = found if len(set(found)) == len(found) else list(names)
    common = os.path.commonprefix(list(names)) if len(names) > 1 else ""  # noqa: RUF071 (a character is what is meant)
    cut = max(common.rfind(mark) for mark in ".:(/") + 1
    opened = common[:cut].count("(") > common[:cut].count(")")
    return [_without_middle(name[cut:].strip().removesuffix(")" if opened else ""), 64) for name in names]


def _own_name(name: str) -> str:
    """Without what stands before it (module, class, machine), with its parameters. No pattern: one took 10 s for names of
    16,000 characters."""
    opening = name.find("(") if "(" in name else len(name)
    return name[max(name.rfind(".", 0, opening), name.rfind("/", 0, opening)) + 1 :]


def _without_middle(name: str, length: int) -> str:
    name = shortened(name, 500)
    return name if len(name) <= length else f"{name[: length // 3]}…{name[-(length - length // 3 - 1) :]}"


def many_data(
    form: Form, found: Stretches, names: Sequence[str], units: Sequence[str], alt: str, image: str = "png"
) -> dict[str, Any]:
    """What many.js draws: ``names`` and ``units`` belong to ``found.series``. Arrays are little-endian float32, base64.

    A series' typical value is the median of its stretches; a cell's colour is the
    logarithm of its ratio to that, so that a half and a double lie equally far from the middle, and the scale ends at the
    95th percentile of all of them.
    """
    typical = np.full(len(names), np.nan)
    seen = np.isfinite(found.middle).any(axis=1)
    typical[seen] = np.nanmedian(found.middle[seen], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.abs(np.log(found.middle / typical[:, None]))
    change = change[np.isfinite(change)]
    limit = max(0.005, float(np.percentile(change, 95))) if change.size else 0.01
    first = found.first
    return {
        "form": form,
        "file": form.replace(" ", "-"),
        "alt": alt,
        "image": image,
        "bins": found.middle.shape[1],
        "names": short_names(names),
        "full": [shortened(name, 200) for name in names],
        "units": [shortened(unit, 40) for unit in units],
        "typical": [float(value) if np.isfinite(value) else None for value in typical],
        "limit": limit,
        "shorts": first["short"].to_list(),
        "dates": [str(time)[:10] for time in first["time"]],
        "subjects": [shortened(str(subject), 90) for subject in first["subject"]],
        "commits": found.commits.tolist(),
        "low": _packed(found.low),
        "middle": _packed(found.middle),
        "high": _packed(found.high),
        "scale": SCALE,
        "ink": INK,
    }


def show_many(data: dict[str, Any], picked: Callable[[int], None]) -> None:
    """Draw; ``picked`` is called with the place of a series that was clicked, before the next run of the script."""
    key = data["file"]

    def on_picked() -> None:
        place = st.session_state[key]["picked"]
        if isinstance(place, int) and 0 <= place < len(data["names"]):
            picked(place)

    component.show("many", key, data, on_picked)


def _packed(values: NDArray[np.float32]) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")
