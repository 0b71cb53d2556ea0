"""The whole prefill and its kernel classes, commit by commit."""

from __future__ import annotations

import statistics
from typing import Any

from .series import CLASSES, NTS, FromWindow, samples


class Wall(FromWindow):
    """One whole prefill. tok/s is its reciprocal: asv takes lower as better, so the time per token is what it stores."""

    params = [list(NTS)]
    param_names = ["nt"]

    def track_seconds_per_token(self, cache: dict[str, str], nt: int) -> dict[str, Any]:
        return samples([ns / 1e9 / nt for ns in self.wall_of("minfer", nt).samples_ns])

    def track_gap_ms(self, cache: dict[str, str], nt: int) -> float:
        part = self.wall_of("minfer", nt).decomposition
        return float("nan") if part is None else sum(part.gap_ns.values()) / 1e6

    def track_peak_memory_bytes(self, cache: dict[str, str], nt: int) -> float:
        peak = self.wall_of("minfer", nt).peak_memory_bytes
        return float("nan") if peak is None else float(peak)

    def track_tracer_cost(self, cache: dict[str, str], nt: int) -> float:
        wall = self.wall_of("minfer", nt)
        return statistics.median(wall.traced_ns) / statistics.median(wall.samples_ns) - 1


class Classes(FromWindow):
    """Each kernel class inside the traced wall."""

    params = [list(NTS), list(CLASSES)]
    param_names = ["nt", "class"]

    def check_present(self, *params: Any) -> None:
        self.class_of("minfer", *params)

    def track_class_ms(self, cache: dict[str, str], nt: int, name: str) -> dict[str, Any]:
        return samples([ns / 1e6 for ns in self.class_of("minfer", nt, name).samples_ns])

    def track_us_per_gmac(self, cache: dict[str, str], nt: int, name: str) -> dict[str, Any]:
        found = self.class_of("minfer", nt, name)
        if not found.macs:
            raise NotImplementedError(f"{name} does no multiply-accumulates")
        return samples([ns / 1e3 / (found.macs / 1e9) for ns in found.samples_ns])


def _describe(function: Any, unit: str, direction: str = "lower") -> None:
    function.unit, function.direction, function.version = unit, direction, "1"


_describe(Wall.track_seconds_per_token, "s/token")
_describe(Wall.track_gap_ms, "ms")
_describe(Wall.track_peak_memory_bytes, "bytes")
_describe(Wall.track_tracer_cost, "share of the untraced wall")
_describe(Classes.track_class_ms, "ms")
_describe(Classes.track_us_per_gmac, "us/GMAC")
