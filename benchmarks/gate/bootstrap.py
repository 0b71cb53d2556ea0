"""Start of a worker process: ``python -P bootstrap.py``, with the measured commit's checkout first on PYTHONPATH.

``benchmarks`` must come from the current checkout and the engine from the measured one, although that has a folder
``benchmarks`` too. So this file, run as a script, names its own package explicitly before anything else is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path


def load_package(folder: Path) -> None:
    """Make ``import benchmarks`` mean ``folder``, whatever the path says."""
    spec = importlib.util.spec_from_file_location(
        "benchmarks", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package in {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    load_package(Path(__file__).resolve().parents[1])
    sys.exit(importlib.import_module("benchmarks.gate.worker").main())
