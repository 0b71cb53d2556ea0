"""Coverage-guided fuzzing of tokenizers with atheris: `python -m tests.fuzz.fuzz_tokenizer [corpus folder]`.

Whatever a file's tokenizer keys hold and whatever the text: ids of the vocabulary, or a MinferError of one line; and from a
sound vocabulary of bytes the text comes back. tests/minfer/tokenization/test_hostile_metadata.py runs the same check on what
hypothesis makes up, in the ordinary test run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minfer.chat import ChatTemplate
from minfer.errors import MinferError
from minfer.tokenizer import Tokenizer
from tests.fuzz.one_line import one_line
from tests.minfer.small_vocabularies import byte_pairs, sentence_piece

KEYS = sorted({*byte_pairs(), *sentence_piece(), "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token",
               "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.fim_pad_token_id",
               "general.name", "tokenizer.chat_template"})  # fmt: skip
"""What a change may touch: keys that the tokenizer or the chat template reads."""


def check(metadata: Mapping[str, Any], text: str) -> str | None:
    """Build, encode, decode and fill a template; the error's line, or None. Any other exception is a fault of the engine."""
    try:
        tokenizer = Tokenizer.from_metadata(metadata, "m.gguf")
        ids = tokenizer.encode(text)
        assert all(0 <= token < tokenizer.size for token in ids), ids
        tokenizer.decode(ids, special=True)
        ChatTemplate(metadata, tokenizer, "m.gguf").encode([{"role": "user", "content": text}])
    except MinferError as error:
        return one_line(error)
    return None


def check_round_trip(text: str) -> None:
    """A byte-level vocabulary has a token for every byte, so that no text is lost."""
    tokenizer = Tokenizer.from_metadata(byte_pairs(), "m.gguf")
    ids = tokenizer.encode(text, add_special=False, parse_special=False)
    assert tokenizer.decode(ids) == text, (text, ids)


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("fuzz_tokenizer: atheris is not installed; pip install atheris (it needs clang's fuzzer runtime)")

    def value(data: Any) -> Any:
        def text() -> str:
            return str(data.ConsumeUnicodeNoSurrogates(data.ConsumeIntInRange(0, 12)))

        def count() -> range:
            return range(data.ConsumeIntInRange(0, 300))

        makers: tuple[Callable[[], Any], ...] = (
            lambda: data.ConsumeInt(8),
            data.ConsumeFloat,
            data.ConsumeBool,
            text,
            lambda: [text() for _ in count()],
            lambda: np.array([data.ConsumeInt(4) for _ in count()], np.int32),
            lambda: np.array([data.ConsumeInt(2) for _ in count()], np.float32),
        )
        return makers[data.ConsumeIntInRange(0, len(makers) - 1)]()

    def one(raw: bytes) -> None:
        data = atheris.FuzzedDataProvider(raw)
        metadata = byte_pairs() if data.ConsumeBool() else sentence_piece()
        for _ in range(data.ConsumeIntInRange(0, 3)):
            key = KEYS[data.ConsumeIntInRange(0, len(KEYS) - 1)]
            if data.ConsumeBool():
                metadata[key] = value(data)
            else:
                metadata.pop(key, None)
        text = data.ConsumeUnicodeNoSurrogates(data.remaining_bytes())
        check(metadata, text)
        check_round_trip(text)

    atheris.instrument_all()
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
