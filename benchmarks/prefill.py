"""The whole prefill and its kernel classes, commit by commit."""

from __future__ import annotations

import statistics
from typing import Any

from .attribution.macs import us_per_gmac
from .series import ABSENT, CLASSES, NTS, FromWindow, described, samples


class Wall(FromWindow):
    """One whole prefill. tok/s is its reciprocal: asv takes lower as better, so the time per token is what it stores."""

    params = [list(NTS)]
    param_names = ["nt"]

    @described("s/token")
    def track_seconds_per_token(self, cache: dict[str, str], nt: int) -> Any:
        wall = self.wall("minfer", nt)
        return samples([ns / 1e9 / nt for ns in wall.samples_ns]) if wall else ABSENT

    @described("ms")
    def track_gap_ms(self, cache: dict[str, str], nt: int) -> float:
        wall = self.wall("minfer", nt)
        return sum(wall.decomposition.gap_ns.values()) / 1e6 if wall and wall.decomposition else ABSENT

    @described("bytes")
    def track_peak_memory_bytes(self, cache: dict[str, str], nt: int) -> float:
        wall = self.wall("minfer", nt)
        return float(wall.peak_memory_bytes) if wall and wall.peak_memory_bytes is not None else ABSENT

    @described("traced wall / untraced wall")
    def track_tracer_cost(self, cache: dict[str, str], nt: int) -> float:
        wall = self.wall("minfer", nt)
        return statistics.median(wall.traced_ns) / statistics.median(wall.samples_ns) if wall and wall.traced_ns else ABSENT


class Classes(FromWindow):
    """Each kernel class inside the traced wall."""

    params = [list(NTS), list(CLASSES)]
    param_names = ["nt", "class"]

    @described("ms")
    def track_class_ms(self, cache: dict[str, str], nt: int, name: str) -> Any:
        found = self.kernel_class("minfer", nt, name)
        return samples([ns / 1e6 for ns in found.samples_ns]) if found else ABSENT

    @described("us/GMAC")
    def track_us_per_gmac(self, cache: dict[str, str], nt: int, name: str) -> Any:
        found = self.kernel_class("minfer", nt, name)
        unit = us_per_gmac(1.0, found.macs) if found else None
        return samples([ns * unit for ns in found.samples_ns]) if found and unit is not None else ABSENT
