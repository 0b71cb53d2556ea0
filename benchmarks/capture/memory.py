"""Peak memory of a stretch of this process, as the kernel counts it."""

from __future__ import annotations

import re
from pathlib import Path


def reset_peak() -> bool:
    """Start a new stretch. False where the kernel does not offer it (then no peak of a stretch can be known)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak_bytes() -> int | None:
    """Largest resident size since ``reset_peak``; None where the kernel does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
