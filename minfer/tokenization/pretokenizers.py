"""How each named pre-tokenizer cuts a text into words before pairs are merged.

The names are those of ``tokenizer.ggml.pre`` and the expressions those of llama.cpp (MIT), src/llama-vocab.cpp, written for
Oniguruma, which Hugging Face ``tokenizers`` uses. Each expression is applied to every piece that the one before it left; a
match and the text between two matches are pieces of their own. llama.cpp replaces some characters before it matches; where
its result therefore differs from what its expression says, the expression here gives its result, and a comment says how.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import MinferError


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """The expressions of one kind, and what llama.cpp presumes of files that name it."""

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    """A word that is a token as a whole is taken as that token, whatever the merges say."""
    add_bos: bool = False
    """Whether a begin-of-sequence token is added where the file does not say."""
    byte_level: bool = True
    """Whether bytes are written as GPT-2's printable characters; otherwise tokens are plain UTF-8 with a visible space."""


def _characters(ranges: str) -> str:
    """The inside of a character class from ranges of code points in hexadecimal, as Oniguruma writes them."""
    return "-".join(f"\\x{{{end}}}" for end in ranges.split("-")).replace(" ", "}\\x{")


_BLANKS = r"\s+(?!\S)|\s+"
_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_BLANKS}"
_SUFFIX = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"


def _llama3(numbers: str, *, marks: str = "", blanks: str = rf"\s*[\r\n]+|{_BLANKS}") -> str:
    """Llama 3's expression and its relatives': they differ in how digits group and whether marks count as letters."""
    return (
        rf"{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}{marks}]+|{numbers}| ?[^\s\p{{L}}{marks}\p{{N}}]+[\r\n]*|{blanks}"
    )


def _gpt4o(numbers: str, *, letter: str = r"\p{L}", suffix: str = f"{_SUFFIX}?") -> str:
    """GPT-4o's expression and its relatives': a word also ends where ASCII lower case meets upper case."""
    lower, upper = f"(?:(?=[{letter}])[^A-Z])", f"(?:(?=[{letter}])[^a-z])"
    return (
        rf"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{suffix}|[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{suffix}"
        rf"|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|{_BLANKS}"
    )


def _deepseek3(ends: str) -> str:
    """DeepSeek V3's expression and its relatives': punctuation may lead a word."""
    return (
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        rf"| ?[\p{{P}}\p{{S}}]+{ends}|{_BLANKS}"
    )


# llama.cpp turns blanks beyond ASCII into a control character first, so that no range of characters ever matches one.
_CHINESE = rf"(?:(?!\s)[{_characters('4E00-9FA5 800-4E00 AC00-D7FF')}])+"
_KANA = f"[{_characters('4E00-9FA5 3040-309F 30A0-30FF')}]+"
_LINES = r"[^\n]+|[\n]+"
_NOT_ENDING_A_SENTENCE = r" ?[^(\s|.,!?…。，、।۔،)]+"
_HAN = _characters("4E00-9FFF 3400-4DBF 20000-2A6DF 2A700-2B73F 2B740-2B81F 2B820-2CEAF 2CEB0-2EBEF F900-FAFF 2F800-2FA1F")
_DEEPSEEK_LETTERS = _characters(
    "41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376-377 37B-37D 37F 386 388-38A 38C 38E-3A1 "
    "3A3-3F5 3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A "
    "1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 "
    "1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 "
    "212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183-2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2-2CF3 A640-A66D "
    "A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F "
    "104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943"
)
_QWEN2 = PreTokenizer((_llama3(r"\p{N}"),))
_STARCODER = PreTokenizer((r"\p{N}", _GPT2))
_DEEPSEEK3 = PreTokenizer((r"\p{N}{1,3}", _KANA, _deepseek3(r"[\r\n]*|\s*[\r\n]+")))
_GPT_2 = PreTokenizer((_GPT2,))
_GPT4O = PreTokenizer((_gpt4o(r"\p{N}{1,3}"),))
_LLAMA3 = PreTokenizer((_llama3(r"\p{N}{1,3}"),), ignore_merges=True, add_bos=True)
_LLAMA3_PLAIN = PreTokenizer((_llama3(r"\p{N}{1,3}"),))
_BAILING = PreTokenizer((_llama3(r"\p{N}", blanks=rf"\s*[\r\n]|{_BLANKS}"),))
_POEM = PreTokenizer((_NOT_ENDING_A_SENTENCE,))
# Digits group from the end of their number, and llama.cpp leaves what stands before a number in its first group's piece.
_NUMBERS_FROM_THE_END = r"\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
# llama.cpp maps every kind of letter to one, so that only the boundary between letters and others is left of the expression.
_TINY_AYA = PreTokenizer((
    _NUMBERS_FROM_THE_END,
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+{_SUFFIX}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|{_BLANKS}",
))
_RUNS_OF_BLANKS = "|".join(rf"\s{{{n}}}(?!\S)" for n in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2")) + r"|\s"
_AFMOE_ASIAN = _characters(
    "4E00-9FFF 3400-4DBF F900-FAFF 3040-309F 30A0-30FF FF65-FF9F 2F00-2FDF E40-E7F E80-EFF 1780-17FF 1000-109F AA60-AA7F "
    "A9E0-A9FF AC00-D7AF 1100-11FF"
)
_DEEPSEEK_PUNCTUATION = _characters("21-2F 3A-7E FF01-FF0F FF1A-FF5E 2018-201F 3000-3002")
_YOUTU_PUNCTUATION = _characters("FF01 2026 201C 201D 2018 2019 2014 FF1A FF1B FF0C 3001-303F FE30-FE4F")

PRETOKENIZERS: dict[str, PreTokenizer] = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "minicpm5": PreTokenizer((r"\p{N}{1,3}", _llama3(r"\p{N}+")), ignore_merges=True),
    **dict.fromkeys(
        ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"), _LLAMA3
    ),
    "deepseek-llm": PreTokenizer((
        r"[\r\n]", rf"\s?[{_DEEPSEEK_LETTERS}]+", rf"\s?(?:(?!\s)[{_DEEPSEEK_PUNCTUATION}])+", r"\s+\z", _CHINESE, r"\p{N}+",
    )),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CHINESE, r"\p{N}")),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), _DEEPSEEK3),
    "spark2_5": PreTokenizer((r"\p{N}{1,3}", _KANA, _deepseek3(r"|[\r\n]"), r"\p{N}")),
    "youtu": PreTokenizer((
        rf"[{_characters('AC00-D7A3 3131-318E')}]+|[{_YOUTU_PUNCTUATION}]+|[{_characters('3105-312F')}]+|{_KANA}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+{_SUFFIX}?|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|{_BLANKS}",
    ), ignore_merges=True),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    **dict.fromkeys(
        ("gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "modern-bert",
         "jina-v1-en", "jina-v2-code", "roberta-bpe", "exaone4", "mpt", "olmo", "jais", "trillion", "granite-docling"),
        _GPT_2,
    ),
    **dict.fromkeys(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"), _STARCODER
    ),
    "jais-2": PreTokenizer((_llama3(r"\p{N}{1,3}", blanks=rf"\s*[\r\n]+|{_RUNS_OF_BLANKS}"),)),
    "gemma4": PreTokenizer((_LINES,), byte_level=False, add_bos=True),
    "granite-embed-multi-311m": PreTokenizer((_LINES,), byte_level=False, add_bos=True),
    "sarvam-moe": PreTokenizer((_LINES,), byte_level=False),
    **dict.fromkeys(
        ("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "solar-open", "megrez", "grok-2"), _QWEN2
    ),
    "qwen35": PreTokenizer((_llama3(r"\p{N}", marks=r"\p{M}"),)),
    **dict.fromkeys(("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"), _LLAMA3_PLAIN),
    **dict.fromkeys(("poro-chat", "bloom", "gpt3-finnish"), _POEM),
    "viking": PreTokenizer((_NOT_ENDING_A_SENTENCE, r"\p{N}")),
    "tekken": PreTokenizer((_gpt4o(r"\p{N}", suffix=""),), ignore_merges=True, add_bos=True),
    "exaone-moe": PreTokenizer((
        rf"{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|{_BLANKS}",
    )),
    "chameleon": PreTokenizer((
        "<sentinel:[0-9]+>", "(?:IMGIMG)(?:[A-I]{1,4})Z", r"[\t\n]|    |  ", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", _GPT2,
    ), add_bos=True),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), _GPT4O),
    "granite-embed-multi-97m": PreTokenizer((_gpt4o(r"\p{N}{1,3}", letter=r"\p{L}\p{M}"),), ignore_merges=True),
    **dict.fromkeys(("tiny_aya", "cohere2moe"), _TINY_AYA),
    "superbpe": PreTokenizer((r"\p{N}+", r"(?=(?:[0-9]{3})+(?![0-9]))")),
    **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe"), _BAILING),
    "seed-coder": PreTokenizer((
        rf"{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|\s*[\r\n]+|{_BLANKS}",
    )),
    "kimi-k2": PreTokenizer((
        rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}&&[^{_HAN}]]+{_SUFFIX}?|\p{{N}}{{1,3}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_BLANKS}",
    )),
    "afmoe": PreTokenizer((_NUMBERS_FROM_THE_END, f"[{_AFMOE_ASIAN}]+", _deepseek3(r"[\r\n]*|\s*[\r\n]+"))),
    "ufakzeka": PreTokenizer((
        rf"[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|{_BLANKS}",
    )),
    "laguna": PreTokenizer((_LINES, _llama3(r"\p{N}"))),
}


def pretokenizer(name: str, file: str) -> PreTokenizer:
    """The pre-tokenizer that ``file`` names. Raises MinferError for an unknown name."""
    found = PRETOKENIZERS.get(name)
    if found is None:
        raise MinferError(
            f"{file}: tokenizer.ggml.pre is {name!r}, a pre-tokenizer that is not known here, and another would give wrong "
            f"ids in silence; known: {', '.join(sorted(PRETOKENIZERS))}"
        )
    return found
