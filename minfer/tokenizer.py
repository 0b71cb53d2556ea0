"""Text to token ids and back, by the vocabulary that a GGUF file carries. The ids are llama.cpp's."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from .errors import MinferError
from .tokenization.encoders import SPACE, Encoder, byte_characters, byte_pair_encoder, sentence_piece_encoder
from .tokenization.vocabulary import Kind, TokenType, Vocabulary, read_vocabulary

_BLANKS = " \t\n\v\f\r"


class Tokenizer:
    """Encodes and decodes. Building it reads the tokens; the encoder is made at the first text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._bytes = {character: byte for byte, character in enumerate(byte_characters())}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], file: str = "the file") -> Tokenizer:
        """The tokenizer of a file's metadata. Raises MinferError where it is missing, unknown or contradicts itself."""
        return cls(read_vocabulary(metadata, file))

    @property
    def size(self) -> int:
        """Number of token ids."""
        return self.vocabulary.size

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end a generation."""
        return self.vocabulary.ends

    @cached_property
    def _encode_plain(self) -> Encoder:
        make = sentence_piece_encoder if self.vocabulary.kind is Kind.SENTENCE_PIECE else byte_pair_encoder
        return make(self.vocabulary)

    @cached_property
    def _special(self) -> list[int]:
        return self.vocabulary.special()

    def encode(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """The ids of ``text``.

        ``add_special`` puts the begin and end tokens that the file asks for around it. ``parse_special`` reads the texts of
        control tokens ("<|im_end|>") as those tokens; without it they are plain text, as text from outside should be.
        Raises MinferError where the file has no vocabulary, or the text is not Unicode.
        """
        vocabulary = self.vocabulary
        if vocabulary.kind is Kind.NONE:
            raise MinferError(f"{vocabulary.file}: has no vocabulary to read texts with; give token ids (--ids 1,2,3)")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MinferError(f"the text is not valid UTF-8 at character {error.start}; give it as UTF-8") from error
        result = [vocabulary.bos] if add_special and vocabulary.add_bos and vocabulary.bos is not None else []
        after_special = True
        for fragment in self._fragments(text, parse_special):
            if isinstance(fragment, int):
                result.append(fragment)
            else:
                result += self._encode_plain(" " + fragment if vocabulary.space_prefix and after_special else fragment)
            after_special = isinstance(fragment, int)
        if add_special and vocabulary.add_eos and vocabulary.eos is not None:
            result.append(vocabulary.eos)
        return result

    def decode(self, tokens: Iterable[int], *, special: bool = False) -> str:
        """The text of ``tokens``; control tokens are left out unless ``special``. Bytes that are no UTF-8 become U+FFFD.

        The blank that encoding puts before a text is taken away again. llama.cpp also deletes blanks before punctuation for
        some vocabularies; that changes texts, so it is not done here.
        """
        text = b"".join(self.piece(token, special=special) for token in tokens).decode("utf-8", "replace")
        return text[1:] if self.vocabulary.space_prefix and text.startswith(" ") else text

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes that one token stands for, which may be a part of a character. Raises MinferError out of range."""
        vocabulary = self.vocabulary
        if not 0 <= token < vocabulary.size:
            raise MinferError(f"{vocabulary.file}: token id {token} is out of range, expected 0 to {vocabulary.size - 1}")
        if vocabulary.kind is Kind.NONE:
            return f"<{token}>".encode()
        text, kind = vocabulary.tokens[token], vocabulary.types[token]
        if kind in (TokenType.CONTROL, TokenType.UNKNOWN):
            return text.encode() if special else b""
        if kind == TokenType.USER_DEFINED:
            return text.encode()
        if kind == TokenType.BYTE:
            return _byte_of(text)
        if kind != TokenType.NORMAL:
            return b""
        if vocabulary.pre is None or not vocabulary.pre.byte_level:
            return text.replace(SPACE, " ").encode()
        return b"".join(bytes([self._bytes[c]]) if c in self._bytes else c.encode() for c in text)

    def stream(self, *, special: bool = False) -> TextStream:
        """A decoder that is given one token at a time."""
        return TextStream(self, special)

    def _fragments(self, text: str, parse_special: bool) -> list[int | str]:
        """``text`` cut at special tokens: the longest everywhere first, then the next, as llama.cpp cuts."""
        vocabulary = self.vocabulary
        fragments: list[int | str] = [text] if text else []
        for token in self._special:
            word = vocabulary.tokens[token]
            if word not in text or (not parse_special and vocabulary.types[token] != TokenType.USER_DEFINED):
                continue
            cut: list[int | str] = []
            for fragment in fragments:
                if isinstance(fragment, int):
                    cut.append(fragment)
                    continue
                for index, part in enumerate(fragment.split(word)):
                    if index:
                        cut.append(token)
                        part = part.lstrip(_BLANKS) if token in vocabulary.strips_after_special else part
                    if part:
                        cut.append(part)
            fragments = cut
        return fragments


class TextStream:
    """Text out of tokens as they come: what is only the beginning of a character waits for its rest."""

    def __init__(self, tokenizer: Tokenizer, special: bool) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that is complete now."""
        return self._decoder.decode(self._tokenizer.piece(token, special=self._special))

    def finish(self) -> str:
        """What is left: U+FFFD for a character that never became whole."""
        return self._decoder.decode(b"", True)


def _byte_of(text: str) -> bytes:
    try:
        return bytes([int(text[3:5], 16)])
    except ValueError:
        return text.encode()
