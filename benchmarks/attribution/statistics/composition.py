"""Whether a kernel class slowed, or only its share of the wall rose because the others shrank.

share = class / (class + others), so a share moves when either does. Both are compared across the same change, in time
and not in shares, and the words say which of them moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .change_points import ChangePoint, SeriesError
from .shift import NEAREST, Shift, shift_between

Floats = NDArray[np.float64]
Cause = Literal[
    "class slowed", "class got faster", "others shrank", "others grew", "class and others moved", "cannot tell"
]  # fmt: skip

LEAST_MOVE = 0.005
"""A class or the rest counts as moved when its interval leaves out 1 and its ratio is at least this far from 1."""


@dataclass(frozen=True, slots=True)
class ShareChange:
    """What stands behind a change of a class's share."""

    cause: Cause
    share_before: float
    share_after: float
    class_shift: Shift
    others_shift: Shift

    @property
    def words(self) -> str:
        """One clause for a line of text."""
        moved = "rose" if self.share_after > self.share_before else "fell"
        share = f"share {self.share_before:.1%} -> {self.share_after:.1%}"
        if self.cause in ("others shrank", "others grew"):
            return f"only the share {moved} ({share}): {self.cause} x{self.others_shift.ratio:.3f}"
        if self.cause == "cannot tell":
            return f"{share}: neither the class nor the others moved by themselves"
        if self.cause == "class and others moved":
            return f"{share}: class x{self.class_shift.ratio:.3f}, others x{self.others_shift.ratio:.3f}"
        return f"{self.cause} x{self.class_shift.ratio:.3f} ({share})"


def explain_share(class_time: Floats, wall: Floats, change: ChangePoint, start: int, end: int) -> ShareChange:
    """Explain a change of ``class_time / wall`` inside the points ``start`` .. ``end`` that hold no other change.

    Both arrays in one unit, of one shape. Raises SeriesError where a class takes more than its wall.
    """
    if class_time.shape != wall.shape:
        raise SeriesError(f"a class of {len(class_time)} points and a wall of {len(wall)} do not belong together")
    over = np.flatnonzero(class_time > wall)
    if len(over):
        raise SeriesError(f"point {over[0]}: the class takes {class_time[over[0]]}, more than its wall {wall[over[0]]}")
    index = change.index
    left, right = slice(max(start, index - NEAREST), index), slice(index, min(end, index + NEAREST))
    others = wall - class_time
    shift = shift_between(class_time[left], class_time[right])
    rest = shift_between(others[left], others[right])
    share = class_time / wall
    return ShareChange(_cause(shift, rest), float(np.median(share[left])), float(np.median(share[right])), shift, rest)


def _cause(shift: Shift, rest: Shift) -> Cause:
    class_moves, others_move = _moves(shift), _moves(rest)
    if class_moves and others_move and _same_way(shift, rest):
        return "class and others moved"
    if class_moves and (not others_move or _size(shift) >= _size(rest)):
        return "class slowed" if (shift.ratio or 1.0) > 1 else "class got faster"
    if others_move:
        return "others grew" if (rest.ratio or 1.0) > 1 else "others shrank"
    return "cannot tell"


def _moves(shift: Shift) -> bool:
    return shift.moved and abs((shift.ratio or 1.0) - 1) >= LEAST_MOVE


def _same_way(one: Shift, other: Shift) -> bool:
    return ((one.ratio or 1.0) > 1) == ((other.ratio or 1.0) > 1)


def _size(shift: Shift) -> float:
    return abs(float(np.log(shift.ratio or 1.0)))
