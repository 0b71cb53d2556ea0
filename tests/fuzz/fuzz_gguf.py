"""Coverage-guided fuzzing of the model loader with atheris: `python -m tests.fuzz.fuzz_gguf [corpus folder]`.

Whatever the bytes, loading and running them ends in an answer or in a MinferError of one line. tests/minfer/test_hostile.py
runs the same check on mutated files in the ordinary test run.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import minfer
from minfer.errors import MinferError


def check(path: Path) -> str | None:
    """Load and run the file; the error's line, or None where it ran. Any other exception is a fault of the engine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            engine = minfer.load(path, backend="numpy", context=16)
            engine.prefill([0, 0, 0])
            engine.decode(0)
    except MinferError as error:
        line = str(error)
        assert line, "an error without a line"
        assert "\n" not in line, line
        return line
    return None


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("fuzz_gguf: atheris is not installed; pip install atheris (it needs clang's fuzzer runtime)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzzed.gguf"

        def one(data: bytes) -> None:
            path.write_bytes(data)
            check(path)

        atheris.instrument_all()
        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
