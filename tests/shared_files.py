"""Where the optional reference files are: real traces, histories, tokenizers. Tests that use them skip without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_VARIABLES = {
    "traces": "MINFER_TRACE_DIR",
    "histories": "MINFER_HISTORY_DIR",
    "tokenizers": "MINFER_TOKENIZER_DIR",
    "figures": "MINFER_FIGURES_DIR",
}


def shared_folder(name: str) -> Path:
    """The folder of reference files called ``name``; skips the calling test, saying why, where there is none."""
    variable = _VARIABLES[name]
    named = os.environ.get(variable)
    checkout = Path(__file__).resolve().parents[1]
    candidates = [Path(named)] if named else [parent / "shared" / name for parent in checkout.parents[:2]]
    for folder in candidates:
        if folder.is_dir():
            return folder
    pytest.skip(f"no {name} folder: set {variable}")


def shared_file(folder: str, name: str) -> Path:
    """One reference file; skips the calling test, saying why, where it is not there."""
    path = shared_folder(folder) / name
    if not path.is_file():
        pytest.skip(f"{name} is not in the {folder} folder")
    return path
