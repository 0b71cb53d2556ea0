"""Generation against a model that says a fixed text: what ends it, what is held back, what is counted."""

import numpy as np
import pytest

from minfer.errors import MinferError
from minfer.generate import Generation
from minfer.sampling import GREEDY, Sampler
from minfer.tokenizer import Tokenizer
from tests.minfer.small_vocabularies import byte_pairs

TOKENIZER = Tokenizer.from_metadata(byte_pairs())
END = TOKENIZER.vocabulary.eos


class Says:
    """A model whose most likely next token spells a text, one token a step."""

    def __init__(self, text, context=1000):
        self.script = [*TOKENIZER.encode(text), END, *TOKENIZER.encode("after the end")]
        self.context = context
        self.position = 0

    def prefill(self, tokens):
        self.prompt, self.position = list(tokens), 0
        return self._next()

    def decode(self, token):
        assert token == self.script[self.position - 1]
        assert len(self.prompt) + self.position <= self.context
        return self._next()

    def _next(self):
        logits = np.zeros(TOKENIZER.size, np.float32)
        logits[self.script[self.position]] = 1
        self.position += 1
        return logits


def generated(model, **options):
    generation = Generation(model, TOKENIZER, [1, 2, 3], Sampler(GREEDY), **options)
    return list(generation), generation


def test_ends_at_an_ending_token_which_is_not_given_out():
    parts, generation = generated(Says("hi 🙂"))
    assert parts == ["h", "i", " ", "🙂"]
    assert generation.reason == "end token"
    assert generation.tokens[-1] == END
    assert "".join(generated(Says("hi"), special=True)[0]) == "hi<|endoftext|>"
    assert "".join(generated(Says("hi"), ignore_end=True, limit=8)[0]) == "hiafter"


@pytest.mark.parametrize(("limit", "text"), [(0, ""), (1, "h"), (2, "he")])
def test_ends_at_the_limit_without_a_wasted_step(limit, text):
    model = Says("hello")
    parts, generation = generated(model, limit=limit)
    assert "".join(parts) == text
    assert generation.reason == "limit"
    assert model.position == max(1, limit)


def test_ends_where_the_context_is_full():
    parts, generation = generated(Says("hello", context=5))
    assert "".join(parts) == "hel"
    assert generation.reason == "context"


@pytest.mark.parametrize(
    ("stops", "text"),
    [(["lo"], "hel"), (["x", "l"], "he"), (["lx"], "hello"), (["hello"], ""), (["loz"], "hello"), (["ll", "el"], "h")],
)
def test_stop_texts_end_it_and_are_not_given_out(stops, text):
    parts, generation = generated(Says("hello"), stops=stops)
    assert "".join(parts) == text
    assert generation.reason == ("end token" if text == "hello" else "stop text")


def test_text_that_may_begin_a_stop_text_waits():
    parts, _ = generated(Says("xyxw"), stops=["xyz"])
    assert parts == ["xy", "xw"]


def test_a_character_cut_short_is_still_given_out():
    model = Says("é")
    parts, _ = generated(model, limit=1)
    assert parts == ["\ufffd"]


@pytest.mark.parametrize(("prompt", "stops", "message"), [([], (), "no tokens"), ([1], ("",), "a stop text is empty")])
def test_nothing_to_work_on_is_refused(prompt, stops, message):
    with pytest.raises(MinferError, match=message):
        Generation(Says("x"), TOKENIZER, prompt, Sampler(GREEDY), stops=stops)
