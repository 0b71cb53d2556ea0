"""Importers: one file per trace format, chosen by content. ``open_trace(path)`` is the way in."""

from __future__ import annotations

from .detect import open_trace

__all__ = ["open_trace"]
