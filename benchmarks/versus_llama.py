"""The same weights, the same tokens, the same window, two engines: how many times llama.cpp's time the engine takes.

llama.cpp runs at its best: of several ubatch sizes the fastest is the baseline. Without a peer there is no value.
"""

from __future__ import annotations

from typing import Any

from .series import ABSENT, CLASSES, NTS, FromWindow, described, key


class Ratio(FromWindow):
    """The whole wall."""

    params = [list(NTS)]
    param_names = ["nt"]

    @described("minfer time / llama.cpp time")
    def track_time_ratio(self, values: dict[str, Any], nt: int) -> Any:
        return values.get(key("time_ratio", nt), ABSENT)

    @described("s/token")
    def track_peer_seconds_per_token(self, values: dict[str, Any], nt: int) -> Any:
        return values.get(key("peer_seconds_per_token", nt), ABSENT)


class ClassRatio(FromWindow):
    """Cost of a class (us per GMAC; its time where it has no MACs) over llama.cpp's cost of the same class."""

    params = [list(NTS), list(CLASSES)]
    param_names = ["nt", "class"]

    @described("minfer cost / llama.cpp cost")
    def track_cost_ratio(self, values: dict[str, Any], nt: int, name: str) -> Any:
        return values.get(key("cost_ratio", nt, name), ABSENT)
