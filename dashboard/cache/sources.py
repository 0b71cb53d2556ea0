"""Which files a results folder holds, and what of each has been read: the cache's key is their content."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["asv", "record"]


@dataclass(frozen=True, slots=True)
class Found:
    """One file of the results folder as it is now."""

    path: str
    """Relative to the results folder, with forward slashes."""
    kind: Kind
    machine: str
    size: int
    mtime_ns: int


def find_sources(folder: Path) -> dict[str, Found]:
    """Every result file by path. One directory scan a machine: 20,000 files take about 0.1 s."""
    found: dict[str, Found] = {}
    if not folder.is_dir():
        return found
    with os.scandir(folder) as machines:
        for machine in machines:
            if machine.name.startswith(".") or not machine.is_dir():
                continue
            _scan(Path(machine.path), machine.name, machine.name, "asv", ".json", found)
            records = Path(machine.path) / "records"
            if records.is_dir():
                _scan(records, f"{machine.name}/records", machine.name, "record", ".jsonl", found)
    return found


def _scan(folder: Path, prefix: str, machine: str, kind: Kind, ending: str, found: dict[str, Found]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            # machine.json describes the machine itself; a name that starts with a dot is a write under way.
            if not name.endswith(ending) or name == "machine.json" or name.startswith("."):
                continue
            if not entry.is_file():
                continue
            stat = entry.stat()
            path = f"{prefix}/{name}"
            found[path] = Found(path, kind, machine, stat.st_size, stat.st_mtime_ns)


def content_digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
