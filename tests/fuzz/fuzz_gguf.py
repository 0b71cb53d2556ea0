"""Coverage-guided fuzzing of the model loader with atheris: `python -m tests.fuzz.fuzz_gguf [corpus folder]`.

Without a folder it starts from small models. Whatever the bytes, loading and running them ends in an answer or in a
MinferError of one line. tests/minfer/test_hostile.py runs the same check on mutated files in the ordinary test run.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import minfer
from minfer.errors import MinferError
from tests.fuzz.one_line import one_line
from tests.minfer.synthetic import Tiny, write_tiny


def check(path: Path) -> str | None:
    """Load and run the file; the error's line, or None where it ran. Any other exception is a fault of the engine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            engine = minfer.load(path, backend="numpy", context=16)
            engine.prefill([0, 0, 0])
            engine.decode(0)
    except MinferError as error:
        return one_line(error)
    return None


def small_models(folder: Path) -> Path:
    """Fill ``folder`` with whole models to start from: a fuzzer that starts from nothing never gets past the header."""
    folder.mkdir()
    for architecture in ("llama", "gemma3", "qwen2", "qwen3moe"):
        experts = {"experts": 3, "experts_used": 2} if architecture == "qwen3moe" else {}
        small = Tiny(architecture, layers=1, embedding=32, feed_forward=32, vocabulary=8, key_length=8, value_length=8,
                     biased=architecture == "qwen2", type="Q8_0", **experts)  # fmt: skip
        write_tiny(folder / f"{architecture}.gguf", small)
    return folder


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("fuzz_gguf: atheris is not installed; pip install atheris (it needs clang's fuzzer runtime)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzzed.gguf"
        if not [argument for argument in sys.argv[1:] if not argument.startswith("-")]:
            sys.argv.append(str(small_models(Path(folder) / "corpus")))

        def one(data: bytes) -> None:
            path.write_bytes(data)
            check(path)

        atheris.instrument_all()
        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
