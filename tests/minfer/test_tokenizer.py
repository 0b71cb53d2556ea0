"""Ids and texts of every kind of vocabulary: by hand on small ones, by llama.cpp's vectors on real ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minfer.errors import MinferError
from minfer.gguf import open_gguf
from minfer.tokenizer import Tokenizer
from tests.minfer.small_vocabularies import CHARACTERS, byte_pairs, sentence_piece
from tests.real_models import GEMMA, SMOLLM2, real_model
from tests.shared_files import shared_file

MERGES = ["h e", "l l", "he ll", "hell o", "Ġ hello", "t h", "1 2"]
PIECES = [("▁", -9.0), ("h", -8.0), ("e", -8.0), ("l", -8.0), ("o", -8.0), ("he", -2.0), ("ll", -3.0), ("el", -1.0),
          ("hell", -1.5), ("hello", -0.5), ("▁hello", -0.4)]  # fmt: skip


def names(tokenizer, ids):
    return [tokenizer.vocabulary.tokens[token] for token in ids]


def test_byte_pairs_merge_by_rank_not_by_length():
    tokenizer = Tokenizer.from_metadata(byte_pairs(MERGES))
    assert names(tokenizer, tokenizer.encode("hello hello hells")) == ["hello", "Ġhello", "Ġ", "hell", "s"]
    assert names(tokenizer, tokenizer.encode("é")) == ["Ã", "©"]
    assert tokenizer.encode("") == []


def test_the_pre_tokenizer_decides_what_may_merge():
    together = Tokenizer.from_metadata(byte_pairs(MERGES, pre="gpt-2"))
    apart = Tokenizer.from_metadata(byte_pairs(MERGES, pre="starcoder"))
    assert names(together, together.encode("12")) == ["12"]
    assert names(apart, apart.encode("12")) == ["1", "2"]


def test_a_whole_word_that_is_a_token_is_taken_only_where_merges_are_ignored():
    merging = Tokenizer.from_metadata(byte_pairs(["a b", "b c", "a bc"]))
    ignoring = Tokenizer.from_metadata(byte_pairs(["a b", "b c", "a bc"], pre="llama-bpe"))
    assert names(merging, merging.encode("abc")) == ["ab", "c"]
    assert names(ignoring, ignoring.encode("abc", add_special=False)) == ["abc"]


def test_merges_that_are_no_tokens_take_the_other_road_to_the_same_ids():
    plain = Tokenizer.from_metadata(byte_pairs(MERGES))
    strange = byte_pairs(MERGES)
    strange["tokenizer.ggml.merges"] = [*MERGES, "q z"]
    other = Tokenizer.from_metadata(strange)
    for text in ("hello hello", "the 12 hells\n\n  12", "ünïcödé 你好", "hhellllo"):
        assert other.encode(text) == plain.encode(text)
    assert other.encode("qz") == []  # As in llama.cpp: the pair merges into what is no token and has no bytes.


@given(st.text(max_size=40))
def test_bytes_come_back_as_they_went(text):
    assert BYTES.decode(BYTES.encode(text)) == text
    assert SENTENCES.decode(SENTENCES.encode(text, add_special=False)) == text.replace("▁", " ")


BYTES = Tokenizer.from_metadata(byte_pairs(MERGES))
SENTENCES = Tokenizer.from_metadata(sentence_piece(PIECES))


def test_sentence_piece_merges_by_score_with_a_leading_blank():
    assert names(SENTENCES, SENTENCES.encode("hello")) == ["<s>", "▁", "h", "el", "l", "o"]
    without_el = [piece for piece in PIECES if piece[0] != "el"]
    whole = Tokenizer.from_metadata(sentence_piece(without_el))
    assert names(whole, whole.encode("hello")) == ["<s>", "▁hello"]
    bare = Tokenizer.from_metadata(sentence_piece(without_el, add_space_prefix=False, add_bos_token=False))
    assert names(bare, bare.encode("hello")) == ["hello"]


def test_of_equal_scores_the_leftmost_pair_merges():
    tokenizer = Tokenizer.from_metadata(sentence_piece([("a", -1), ("aa", -1), ("▁", -1)], add_space_prefix=False))
    assert names(tokenizer, tokenizer.encode("aaa", add_special=False)) == ["aa", "a"]


def test_what_is_no_token_is_spelled_in_bytes():
    assert names(SENTENCES, SENTENCES.encode("é", add_special=False)) == ["▁", "<0xC3>", "<0xA9>"]


def test_a_blank_goes_before_text_that_follows_a_special_token():
    assert names(SENTENCES, SENTENCES.encode("h</s>h")) == ["<s>", "▁", "h", "</s>", "▁", "h"]


def test_special_tokens_are_read_only_when_asked():
    tokenizer = Tokenizer.from_metadata(byte_pairs(MERGES))
    end = tokenizer.vocabulary.ids["<|endoftext|>"]
    assert tokenizer.encode("hello<|endoftext|>") == [*tokenizer.encode("hello"), end]
    assert end not in tokenizer.encode("hello<|endoftext|>", parse_special=False)
    assert tokenizer.decode([end]) == ""
    assert tokenizer.decode([end], special=True) == "<|endoftext|>"
    assert end in tokenizer.ends


def test_user_defined_tokens_are_read_always_and_the_longest_first():
    tokenizer = Tokenizer.from_metadata(sentence_piece(PIECES, user_defined=("\n", "\n\n"), add_space_prefix=False))
    ids = tokenizer.encode("h\n\n\nh", add_special=False, parse_special=False)
    assert names(tokenizer, ids) == ["h", "\n\n", "\n", "h"]


def test_begin_and_end_tokens_follow_the_files_flags():
    both = Tokenizer.from_metadata(byte_pairs(add_bos_token=True, add_eos_token=True))
    assert both.encode("a") == [257, CHARACTERS.index("a"), 258]
    assert both.encode("a", add_special=False) == [CHARACTERS.index("a")]


def test_plain_utf8_vocabularies_show_their_blanks():
    metadata = {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.tokens": ["<bos>", "a", "b", "▁", "▁a", "\n", "\n\n", "<0xC3>", "<0xA9>"],
        "tokenizer.ggml.merges": ["▁ a"],
        "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1, 1, 6, 6],
        "tokenizer.ggml.bos_token_id": 0,
    }
    tokenizer = Tokenizer.from_metadata(metadata)
    ids = tokenizer.encode("a a\n\né")
    assert names(tokenizer, ids) == ["<bos>", "a", "▁a", "\n\n", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(ids) == "a a\n\né"


def test_streaming_waits_for_whole_characters():
    stream = BYTES.stream()
    assert [stream.push(token) for token in BYTES.encode("aé🙂")] == ["a", "", "é", "", "", "", "🙂"]
    assert stream.push(BYTES.encode("é")[0]) == ""
    assert stream.finish() == "\ufffd"


def test_a_file_without_vocabulary_takes_ids_only():
    metadata = {"general.architecture": "qwen2", "tokenizer.ggml.model": "none", "qwen2.vocab_size": 10}
    tokenizer = Tokenizer.from_metadata(metadata, "synthetic.gguf")
    assert tokenizer.size == 10
    assert tokenizer.decode([3, 4]) == "<3><4>"
    with pytest.raises(MinferError, match=r"synthetic\.gguf: has no vocabulary"):
        tokenizer.encode("a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenizer.ggml.model": "bert"}, "m.gguf: tokenizer.ggml.model is 'bert'"),
        ({"tokenizer.ggml.model": None}, "no tokenizer.ggml.model"),
        ({"tokenizer.ggml.model": 7}, "tokenizer.ggml.model is 7, expected a text"),
        ({"tokenizer.ggml.pre": "gpt-9"}, "tokenizer.ggml.pre is 'gpt-9', a pre-tokenizer that is not known here"),
        ({"tokenizer.ggml.tokens": None}, "no list of texts in tokenizer.ggml.tokens"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "no list of texts in tokenizer.ggml.tokens"),
        ({"tokenizer.ggml.tokens": ["a", "a"]}, "token 'a' is twice"),
        ({"tokenizer.ggml.merges": None}, "no list of texts in tokenizer.ggml.merges"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "tokenizer.ggml.token_type holds 2 of int64, expected 259"),
        ({"tokenizer.ggml.token_type": 3}, "tokenizer.ggml.token_type holds 3"),
        ({"tokenizer.ggml.bos_token_id": "x"}, "tokenizer.ggml.bos_token_id is 'x', expected a token id"),
        ({"tokenizer.ggml.add_bos_token": 3}, "tokenizer.ggml.add_bos_token is 3, expected true or false"),
        ({"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": None}, "bos_token_id is missing"),
    ],
)
def test_a_vocabulary_that_cannot_be_right_is_refused_by_name(change, message):
    metadata = {**byte_pairs(["a b"]), **change}
    with pytest.raises(MinferError, match=message):
        Tokenizer.from_metadata({key: value for key, value in metadata.items() if value is not None}, "m.gguf")


def test_what_llama_cpp_tolerates_is_a_warning():
    missing = byte_pairs(["a b"], pre="")
    assert "no tokenizer.ggml.pre" in Tokenizer.from_metadata(missing).vocabulary.warnings[0]
    far = byte_pairs(["a b"], eos_token_id=999)
    assert "eos_token_id is 999, expected less than 259" in Tokenizer.from_metadata(far).vocabulary.warnings[0]


@pytest.mark.parametrize("token", [-1, 10**9])
def test_ids_out_of_range_are_named(token):
    with pytest.raises(MinferError, match=f"token id {token} is out of range, expected 0 to "):
        BYTES.decode([token])


def test_text_that_is_not_unicode_is_refused():
    with pytest.raises(MinferError, match="not valid UTF-8 at character 1"):
        BYTES.encode("a\udcff")


@pytest.mark.parametrize("name", ["deepseek-coder", "gpt-2", "llama-bpe", "llama-spm", "qwen2", "starcoder"])
def test_llama_cpp_vectors(name):
    path = shared_file("tokenizers", f"ggml-vocab-{name}.gguf")
    tokenizer = Tokenizer.from_metadata(open_gguf(path).metadata, path.name)
    texts = path.with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = path.with_suffix(".gguf.out").read_text().splitlines()
    assert len(lines) == 46
    for text, line in zip(texts, lines, strict=False):
        assert tokenizer.encode(text, add_special=False, parse_special=False) == [int(token) for token in line.split()], text


# Ids printed by llama.cpp (b11549) for these texts, special tokens added and parsed.
MULTILINGUAL = "<start_of_turn>user\nПривет, мир! 你好世界\n\n\t مرحبا 123456 👩‍👩‍👧 <end_of_turn><unused3>"
GEMMA_IDS = [
    2, 105, 2364, 107, 116130, 236764, 58562, 236888, 43758, 237389, 12811, 108, 255968, 150423, 236743, 236770,
    236778, 236800, 236812, 236810, 236825, 236743, 243767, 237243, 243767, 237243, 244814, 236743, 106, 9,
]  # fmt: skip
SMOL_IDS = [
    1, 4093, 198, 155, 249, 46879, 16464, 32547, 28, 41337, 7872, 9175, 17, 216, 18645, 250, 48392, 138, 7906,
    240, 178, 239, 230, 14436, 36395, 20602, 44626, 31462, 10805, 216, 33, 34, 35, 36, 37, 38, 15107, 235, 119,
    321, 231, 10813, 235, 119, 321, 231, 10813, 235, 117, 216, 2,
]  # fmt: skip
CHAT = "<|im_start|>user\nПривет, мир! 你好世界\n\n\t مرحبا 123456 👩‍👩‍👧 <|im_end|>"


@pytest.mark.real_model
@pytest.mark.parametrize(("name", "text", "expected"), [(GEMMA, MULTILINGUAL, GEMMA_IDS), (SMOLLM2, CHAT, SMOL_IDS)])
def test_the_ids_of_llama_cpp_on_real_models(name, text, expected):
    path = real_model(name)
    tokenizer = Tokenizer.from_metadata(open_gguf(path).metadata, name)
    assert tokenizer.encode(text) == expected
    assert tokenizer.decode(tokenizer.encode(text), special=True).removeprefix("<bos>") == text
