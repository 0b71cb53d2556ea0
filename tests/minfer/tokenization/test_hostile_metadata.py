"""Whatever a file's tokenizer keys hold, there is a tokenizer or one line, never another exception."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minfer.chat import ChatTemplate
from minfer.errors import MinferError
from minfer.tokenizer import Tokenizer
from tests.fuzz.fuzz_tokenizer import KEYS, check, check_round_trip
from tests.minfer.small_vocabularies import byte_pairs, sentence_piece

NUMBERS = st.one_of(st.integers(-(2**63), 2**64), st.floats(allow_nan=True), st.booleans())
ARRAYS = st.one_of(
    st.lists(st.text(max_size=4), max_size=8),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=300).map(lambda items: np.array(items, np.int32)),
    st.lists(st.floats(width=32), max_size=300).map(lambda items: np.array(items, np.float32)),
)
NAMES = st.sampled_from(["none", "llama", "gpt2", "gemma4", "{{", "{{ 1/0 }}"])
JUNK = st.one_of(NUMBERS, st.text(max_size=12), ARRAYS, NAMES)


@given(
    base=st.sampled_from([byte_pairs, sentence_piece]),
    changes=st.dictionaries(st.sampled_from(KEYS), JUNK, min_size=1, max_size=3),
    missing=st.sets(st.sampled_from(KEYS), max_size=2),
    text=st.text(max_size=12),
)
@settings(max_examples=300, deadline=None)
def test_a_tokenizer_or_one_line(base, changes, missing, text):
    metadata = {key: value for key, value in {**base(), **changes}.items() if key not in missing}
    check(metadata, text)


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_bytes_lose_no_text(text):
    check_round_trip(text)


@given(st.text("{}%#-abmsg().[]'|~+*=0123456789 \nforendifinset", max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_template_renders_or_is_refused(source):
    tokenizer = Tokenizer.from_metadata(byte_pairs(), "m.gguf")
    try:
        ChatTemplate({"tokenizer.chat_template": source}, tokenizer, "m.gguf").render([{"role": "user", "content": "x"}])
    except MinferError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("types", [[1, 1, 9, -5] + [1] * 300, [6] * 300])
def test_types_that_do_not_exist_give_no_text(types):
    tokenizer = Tokenizer.from_metadata({**byte_pairs(), "tokenizer.ggml.token_type": np.array(types, np.int32)})
    assert isinstance(tokenizer.decode(range(tokenizer.size)), str)
