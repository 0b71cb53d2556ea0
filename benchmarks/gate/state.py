"""Pairs on disk: saved whole after each one, so that an interrupted or undecided run can go on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..attribution.errors import UserFacingError
from .files import write_whole
from .replicate import Pair

FORMAT = "minfer-gate-state"
VERSION = 1


class State:
    """The pairs of one question: these two commits, this workload, these settings. Another question is another file."""

    def __init__(self, folder: Path, question: Mapping[str, Any]) -> None:
        text = json.dumps(question, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.path = folder / f"{str(question['base'])[:10]}-{str(question['head'])[:10]}-{digest}.json"
        self._question = json.loads(text)

    def load(self) -> list[Pair]:
        """The pairs saved so far; none where nothing was. Raises UserFacingError where the file cannot be trusted."""
        if not self.path.exists():
            return []
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT or data["version"] != VERSION or data["question"] != self._question:
                raise ValueError("it belongs to another version or question")
            return [Pair(**pair) for pair in data["pairs"]]
        except (ValueError, KeyError, TypeError) as error:
            raise UserFacingError(f"--resume: cannot read {self.path} ({error}); delete it") from error

    def save(self, pairs: Sequence[Pair]) -> None:
        """Replace the file."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "question": self._question,
            "pairs": [dataclasses.asdict(pair) for pair in pairs],
        }
        write_whole(self.path, json.dumps(data) + "\n", "saving the pairs")
