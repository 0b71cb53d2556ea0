"""The two algorithms that turn a text without special tokens into ids."""

from __future__ import annotations

from collections.abc import Callable

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from ..errors import MinferError
from .merging import merge
from .vocabulary import Vocabulary

SPACE = "▁"
"""SentencePiece's visible blank."""

Encoder = Callable[[str], list[int]]


def byte_characters() -> list[str]:
    """The printable character by which GPT-2's vocabularies write each of the 256 bytes."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(256, 512))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


def byte_pair_encoder(vocabulary: Vocabulary) -> Encoder:
    """Byte-pair encoding by the file's merges: Hugging Face's where it gives llama.cpp's ids, else the merging written here.

    Hugging Face's needs each side and each result of a merge, and each byte, to be a token; and it treats an unknown
    character of plain UTF-8 vocabularies before merging, llama.cpp after it.
    """
    pre, ids = vocabulary.pre, vocabulary.ids
    assert pre is not None
    merges: dict[tuple[str, str], int] = {}
    for index, line in enumerate(vocabulary.merges):
        at = line.find(" ", 1)
        if at > 0:
            merges.setdefault((line[:at], line[at + 1 :]), index)
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in pre.patterns]
    whole = all(left in ids and right in ids and left + right in ids for left, right in merges)
    if pre.byte_level and whole and all(character in ids for character in byte_characters()):
        tokenizer = Tokenizer(models.BPE(vocab=ids, merges=list(merges), ignore_merges=pre.ignore_merges))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)
    return _merging_encoder(vocabulary, merges, pre_tokenizers.Sequence(list(splits)))


def _merging_encoder(
    vocabulary: Vocabulary, merges: dict[tuple[str, str], int], cut: pre_tokenizers.PreTokenizer
) -> Encoder:
    pre, ids = vocabulary.pre, vocabulary.ids
    assert pre is not None
    characters = byte_characters()

    def rank(left: str, right: str) -> float | None:
        return merges.get((left, right))

    def encode(text: str) -> list[int]:
        result: list[int] = []
        for piece, _ in cut.pre_tokenize_str(text if pre.byte_level else text.replace(" ", SPACE)):
            word = "".join(characters[byte] for byte in piece.encode()) if pre.byte_level else piece
            whole = word in ids and (pre.ignore_merges or (not pre.byte_level and not word.strip("\n")))
            for symbol in [word] if whole else merge(list(word), rank):
                token = ids.get(symbol)
                if token is not None:
                    result.append(token)
                elif not pre.byte_level:
                    spelled = (ids.get(f"<0x{byte:02X}>") for byte in symbol.encode())
                    result.extend(token for token in spelled if token is not None)
        return result

    return encode


def sentence_piece_encoder(vocabulary: Vocabulary) -> Encoder:
    """SentencePiece's BPE: merge the neighbours whose union is the token of highest score; spell what is left in bytes."""
    ids, scores = vocabulary.ids, vocabulary.scores
    assert scores is not None
    ranks = {token: -score for token, score in zip(vocabulary.tokens, scores.tolist(), strict=False)}

    def rank(left: str, right: str) -> float | None:
        return ranks.get(left + right)

    def spelled(symbol: str) -> list[int]:
        result = []
        for byte in symbol.encode():
            token = ids.get(f"<0x{byte:02X}>", vocabulary.unknown)
            if token is None:
                raise MinferError(f"{vocabulary.file}: no token for the byte 0x{byte:02X} and no unknown token")
            result.append(token)
        return result

    def encode(text: str) -> list[int]:
        result: list[int] = []
        for symbol in merge(list(text.replace(" ", SPACE)), rank):
            token = ids.get(symbol)
            result.extend(spelled(symbol) if token is None else (token,))
        return result

    return encode
