"""The whole prefill and its kernel classes, commit by commit."""

from __future__ import annotations

from typing import Any

from .series import ABSENT, CLASSES, NTS, FromWindow, described, key


class Wall(FromWindow):
    """One whole prefill. tok/s is its reciprocal: asv takes lower as better, so the time per token is what it stores."""

    params = [list(NTS)]
    param_names = ["nt"]

    @described("s/token")
    def track_seconds_per_token(self, values: dict[str, Any], nt: int) -> Any:
        return values.get(key("seconds_per_token", nt), ABSENT)

    @described("ms")
    def track_gap_ms(self, values: dict[str, Any], nt: int) -> Any:
        return values.get(key("gap_ms", nt), ABSENT)

    @described("bytes")
    def track_peak_memory_bytes(self, values: dict[str, Any], nt: int) -> Any:
        return values.get(key("peak_memory_bytes", nt), ABSENT)

    @described("traced wall / untraced wall")
    def track_tracer_cost(self, values: dict[str, Any], nt: int) -> Any:
        return values.get(key("tracer_cost", nt), ABSENT)


class Classes(FromWindow):
    """Each kernel class inside the traced wall."""

    params = [list(NTS), list(CLASSES)]
    param_names = ["nt", "class"]

    @described("ms")
    def track_class_ms(self, values: dict[str, Any], nt: int, name: str) -> Any:
        return values.get(key("class_ms", nt, name), ABSENT)

    @described("us/GMAC")
    def track_us_per_gmac(self, values: dict[str, Any], nt: int, name: str) -> Any:
        return values.get(key("us_per_gmac", nt, name), ABSENT)
