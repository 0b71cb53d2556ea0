"""The tokens of a file, what kind each is, and which have a role: read from ``tokenizer.ggml.*`` as llama.cpp reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..errors import MinferError
from .pretokenizers import PreTokenizer, pretokenizer


class TokenType(IntEnum):
    """``tokenizer.ggml.token_type``."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Kind(IntEnum):
    """``tokenizer.ggml.model``: the algorithm."""

    NONE = 0
    BYTE_PAIRS = 1
    SENTENCE_PIECE = 2


MODELS = {
    "none": Kind.NONE,
    "no_vocab": Kind.NONE,
    "gpt2": Kind.BYTE_PAIRS,
    "gemma4": Kind.BYTE_PAIRS,
    "llama": Kind.SENTENCE_PIECE,
}

# Tokens that end a generation whatever the file says of them, and fill-in-the-middle tokens that do so too: by their text,
# since files carry no key for it (llama.cpp, src/llama-vocab.cpp).
_ENDS = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>",
    "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
)
_FIM_ENDS = {
    "fim_pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep": ("<|file_sep|>",),
}
_FIM_OTHERS = (
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>",
    "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>",
    "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>",
)
_SPECIAL = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN)
_ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")


@dataclass(frozen=True)
class Vocabulary:
    """A file's tokens and their roles. ``ids`` is the reverse of ``tokens``."""

    file: str
    kind: Kind
    size: int
    tokens: list[str]
    ids: dict[str, int]
    types: NDArray[np.int32]
    scores: NDArray[np.float32] | None
    merges: Sequence[str]
    pre: PreTokenizer | None
    bos: int | None
    eos: int | None
    unknown: int | None
    add_bos: bool
    add_eos: bool
    space_prefix: bool
    """A blank is put before a text that starts the input or follows a special token."""
    ends: frozenset[int]
    """Tokens that end a generation."""
    strips_after_special: frozenset[int]
    """Special tokens that swallow the blanks after them (Phi-3)."""
    warnings: tuple[str, ...]

    def special(self) -> list[int]:
        """Tokens that are cut out of a text before all else, longest first, as llama.cpp looks for them."""
        chosen = np.isin(self.types, _SPECIAL)
        return sorted(np.flatnonzero(chosen).tolist(), key=lambda token: -len(self.tokens[token].encode()))


def read_vocabulary(metadata: Mapping[str, Any], file: str) -> Vocabulary:
    """Read the vocabulary out of a file's metadata. Raises MinferError naming the key, what was seen and expected."""
    model = _text(metadata, "tokenizer.ggml.model", file)
    if model is None:
        raise MinferError(f"{file}: no tokenizer.ggml.model; expected one of {', '.join(MODELS)}; convert it again")
    if model not in MODELS:
        raise MinferError(f"{file}: tokenizer.ggml.model is {model!r}, which is not known here; known: {', '.join(MODELS)}")
    kind = MODELS[model]
    if kind is Kind.NONE:
        return _without_tokens(metadata, file)
    warnings: list[str] = []
    pre = _pretokenizer(metadata, model, file, warnings) if kind is Kind.BYTE_PAIRS else None
    tokens = _tokens(metadata, file)
    ids = {token: index for index, token in enumerate(tokens)}
    if len(ids) != len(tokens):
        twice = next(token for index, token in enumerate(tokens) if ids[token] != index)
        raise MinferError(f"{file}: token {twice!r} is twice in tokenizer.ggml.tokens; convert the model again")
    scores = _numbers(metadata, "tokenizer.ggml.scores", len(tokens), file)
    if kind is Kind.SENTENCE_PIECE and scores is None:
        raise MinferError(f"{file}: no tokenizer.ggml.scores, which a llama vocabulary merges by; convert the model again")
    merges = metadata.get("tokenizer.ggml.merges", ())
    if kind is Kind.BYTE_PAIRS and (not _is_text_array(merges) or not len(merges)):
        raise MinferError(f"{file}: no list of texts in tokenizer.ggml.merges, as {model} needs; convert the model again")
    given = _numbers(metadata, "tokenizer.ggml.token_type", len(tokens), file)
    types = np.full(len(tokens), TokenType.NORMAL, np.int32) if given is None else given[: len(tokens)].astype(np.int32)

    sentence_piece = kind is Kind.SENTENCE_PIECE
    bos = _role(metadata, "bos", 1 if sentence_piece else None, len(tokens), file, warnings)
    eos = _role(metadata, "eos", 2 if sentence_piece else None, len(tokens), file, warnings)
    unknown = _role(metadata, "unknown", 0 if sentence_piece else None, len(tokens), file, warnings)
    ends = _ending_tokens(metadata, ids, types, eos, file, warnings)
    forced_bos = model == "gemma4"
    add_bos = forced_bos or _flag(metadata, "add_bos_token", sentence_piece or (pre is not None and pre.add_bos), file)
    add_eos = _flag(metadata, "add_eos_token", False, file)
    for asked, token, name in ((add_bos, bos, "bos"), (add_eos, eos, "eos")):
        if asked and token is None:
            raise MinferError(f"{file}: a {name} token is to be added, but tokenizer.ggml.{name}_token_id is missing")
    return Vocabulary(
        file, kind, len(tokens), tokens, ids, types, None if scores is None else scores.astype(np.float32), merges, pre,
        bos, eos, unknown, add_bos, add_eos, _flag(metadata, "add_space_prefix", sentence_piece, file), ends,
        _stripping(metadata, ids, types), tuple(warnings),
    )


def _stripping(metadata: Mapping[str, Any], ids: Mapping[str, int], types: NDArray[np.int32]) -> frozenset[int]:
    """Phi-3's special tokens, by the model's name as in llama.cpp: no key says it."""
    name = str(metadata.get("general.name", "")).lower()
    if "phi-3" not in name and "phi3" not in name:
        return frozenset()
    kept = {ids.get(text) for text in ("<unk>", "<s>", "<|endoftext|>")}
    return frozenset(np.flatnonzero(np.isin(types, _SPECIAL)).tolist()) - kept


def _without_tokens(metadata: Mapping[str, Any], file: str) -> Vocabulary:
    size = metadata.get(f"{metadata.get('general.architecture')}.vocab_size", 0)
    if not isinstance(size, int) or size < 0:
        raise MinferError(f"{file}: vocab_size is {size!r}, expected a whole number; convert it again")
    return Vocabulary(
        file, Kind.NONE, size, [], {}, np.zeros(0, np.int32), None, (), None, None, None, None, False, False, False,
        frozenset(), frozenset(), (),
    )


def _pretokenizer(metadata: Mapping[str, Any], model: str, file: str, warnings: list[str]) -> PreTokenizer:
    if model == "gemma4":
        return pretokenizer("gemma4", file)
    name = _text(metadata, "tokenizer.ggml.pre", file)
    if not name:
        warnings.append(f"{file}: no tokenizer.ggml.pre, so texts are cut as llama.cpp's 'default'; convert it again")
        name = "default"
    return pretokenizer(name, file)


def _tokens(metadata: Mapping[str, Any], file: str) -> list[str]:
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not _is_text_array(tokens) or not len(tokens):
        raise MinferError(f"{file}: no list of texts in tokenizer.ggml.tokens; convert the model with its tokenizer")
    return [token or f"[EMPTY_{index}]" for index, token in enumerate(tokens)]


def _is_text_array(value: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(value, Sequence) and not isinstance(value, str) and (not len(value) or isinstance(value[0], str))


def _numbers(metadata: Mapping[str, Any], key: str, least: int, file: str) -> NDArray[Any] | None:
    value = metadata.get(key)
    if value is None:
        return None
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or len(array) < least:
        seen = f"{len(array)} of {array.dtype}" if array.ndim else repr(value)
        raise MinferError(f"{file}: {key} holds {seen}, expected {least} numbers, one for each token; convert it again")
    return array


def _text(metadata: Mapping[str, Any], key: str, file: str) -> str | None:
    value = metadata.get(key)
    if value is not None and not isinstance(value, str):
        raise MinferError(f"{file}: {key} is {value!r}, expected a text; convert the model again")
    return value


def _flag(metadata: Mapping[str, Any], name: str, default: bool, file: str) -> bool:
    value = metadata.get(f"tokenizer.ggml.{name}", default)
    if not isinstance(value, bool):
        raise MinferError(f"{file}: tokenizer.ggml.{name} is {value!r}, expected true or false; convert the model again")
    return value


def _role(
    metadata: Mapping[str, Any], role: str, default: int | None, size: int, file: str, warnings: list[str]
) -> int | None:
    key = f"tokenizer.ggml.{role}_token_id"
    value = metadata.get(key, default)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise MinferError(f"{file}: {key} is {value!r}, expected a token id; convert the model again")
    if 0 <= value < size:
        return value
    if key in metadata:
        warnings.append(f"{file}: {key} is {value}, expected less than {size}; it is left out")
    return None


def _ending_tokens(
    metadata: Mapping[str, Any],
    ids: Mapping[str, int],
    types: NDArray[np.int32],
    eos: int | None,
    file: str,
    warnings: list[str],
) -> frozenset[int]:
    """The ending tokens; marks in ``types`` those that must be hidden although the file calls them normal."""
    roles = [_role(metadata, role, None, len(types), file, warnings) for role in ("eot", "eom", *_FIM_ENDS)]
    ends = {token for token in (*roles, eos) if token is not None}
    by_text = {ids[text] for text in _ENDS if text in ids}
    for role, texts in _FIM_ENDS.items():
        if _role(metadata, role, None, len(types), file, []) is None:
            by_text |= set([ids[text] for text in texts if text in ids][:1])
    hidden = by_text | {ids[text] for text in _FIM_OTHERS if text in ids}
    types[list(hidden)] = TokenType.CONTROL
    types[[ids[text] for text in _ALWAYS_SHOWN if text in ids]] = TokenType.USER_DEFINED
    ends |= by_text
    ending = {text for text in _ENDS if ids.get(text) in ends}
    # Where a vocabulary has its own end of turn, <|end|> ends a message only, and </s> nothing.
    calls = bool(ending & {"<|call|>", "<|calls|>"})
    if "<|end|>" in ending and calls and ending & {"<|return|>", "<|flush|>"}:
        ends.discard(ids["<|end|>"])
        types[ids["<|end|>"]] = TokenType.USER_DEFINED
    if {"<|tool_response>", "</s>"} <= ending:
        ends.discard(ids["</s>"])
        types[ids["</s>"]] = TokenType.NORMAL
    return frozenset(ends)
