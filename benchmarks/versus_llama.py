"""The same weights, the same tokens, the same window, two engines: how many times llama.cpp's time the engine takes.

llama.cpp runs at its best: of several ubatch sizes the fastest is the baseline. Without a peer there is no value.
"""

from __future__ import annotations

from typing import Any

from .series import ABSENT, CLASSES, NTS, FromWindow, described, samples

PEER = "llama.cpp"


class Ratio(FromWindow):
    """The whole wall."""

    params = [list(NTS)]
    param_names = ["nt"]

    @described("minfer time / llama.cpp time")
    def track_time_ratio(self, cache: dict[str, str], nt: int) -> Any:
        ours, theirs, both = self.wall("minfer", nt), self.wall(PEER, nt), self.pair_with(PEER, nt)
        if not ours or not theirs or not both:
            return ABSENT
        if len(ours.samples_ns) != len(theirs.samples_ns):
            # llama-bench ran by itself: no sample of its belongs to one of ours.
            return both.wall_ratio.value
        # Sample i of both engines was taken right after each other: the quotient of a round is free of slow drift.
        return samples([a / b for a, b in zip(ours.samples_ns, theirs.samples_ns, strict=True)])

    @described("s/token")
    def track_peer_seconds_per_token(self, cache: dict[str, str], nt: int) -> Any:
        wall = self.wall(PEER, nt)
        return samples([ns / 1e9 / nt for ns in wall.samples_ns]) if wall else ABSENT


class ClassRatio(FromWindow):
    """Cost of a class (us per GMAC; its time where it has no MACs) over llama.cpp's cost of the same class."""

    params = [list(NTS), list(CLASSES)]
    param_names = ["nt", "class"]

    @described("minfer cost / llama.cpp cost")
    def track_cost_ratio(self, cache: dict[str, str], nt: int, name: str) -> float:
        both = self.pair_with(PEER, nt)
        found = next((each for each in both.classes if each.name == name), None) if both else None
        return found.ratio.value if found else ABSENT
