"""Every named expression compiles and loses no character; where they differ, they differ as llama.cpp's do."""

import pytest
from tokenizers import Regex, pre_tokenizers

from minfer.errors import MinferError
from minfer.tokenization.pretokenizers import PRETOKENIZERS, pretokenizer

TEXT = "I'll DON'T  don't\n\n\t x=3.14159;1234567 ½ naïve Éa\u0301 你好，世界。한국어 ไทย ~~{a_b} \u3000\r\n 🙂   end "


def cut(name, text):
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PRETOKENIZERS[name].patterns]
    return [piece for piece, _ in pre_tokenizers.Sequence(splits).pre_tokenize_str(text)]


@pytest.mark.parametrize("name", PRETOKENIZERS)
def test_pieces_are_the_whole_text(name):
    assert "".join(cut(name, TEXT)) == TEXT


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt-2", "I'll DON'T 12345", ["I", "'ll", " DON", "'", "T", " 12345"]),
        ("llama-bpe", "I'll DON'T 12345", ["I", "'ll", " DON", "'T", " ", "123", "45"]),
        ("qwen2", "a  b 12\n\n c", ["a", " ", " b", " ", "1", "2", "\n\n", " c"]),
        ("starcoder", "x 12", ["x", " ", "1", "2"]),
        ("deepseek-llm", "a\nb 12你好", ["a", "\n", "b", " ", "12", "你好"]),
        ("deepseek-v3", "12345你好ア ~~", ["123", "45", "你好ア", " ~~"]),
        ("falcon", "12345<=>x", ["123", "45", "<=>", "x"]),
        ("gpt-4o", "helloWorld ABc/\n", ["hello", "World", " ABc", "/\n"]),
        ("afmoe", "1234567", ["1", "234", "567"]),
        ("tiny_aya", "1234567A", ["1", "234", "567", "A"]),
        ("superbpe", "1234567", ["1", "234", "567"]),
        ("kimi-k2", "你好world's", ["你好", "world's"]),
        ("viking", "a, b 12", ["a", ",", " b", " ", "1", "2"]),
        ("bailingmoe", "a\n\nb", ["a", "\n\n", "b"]),
        ("seed-coder", "=\nb", ["=", "\n", "b"]),
        ("jais-2", "a" + " " * 5 + "b", ["a", "    ", " b"]),
        ("gemma4", "a b\n\nc", ["a b", "\n\n", "c"]),
    ],
)
def test_how_they_cut(name, text, pieces):
    assert cut(name, text) == pieces


def test_an_unknown_name_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(MinferError, match=r"m\.gguf: tokenizer\.ggml\.pre is 'new-2030'.*known: .*qwen2"):
        pretokenizer("new-2030", "m.gguf")
