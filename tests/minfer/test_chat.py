"""A file's template renders as Transformers renders it, and cannot hang, fill the memory or reach out."""

import pytest

from minfer import chat
from minfer.chat import ChatTemplate
from minfer.errors import MinferError
from minfer.gguf import open_gguf
from minfer.tokenizer import Tokenizer
from tests.minfer.small_vocabularies import byte_pairs, sentence_piece
from tests.real_models import SMOLLM2, real_model

CHATML = (
    "{% for message in messages %}\n"
    "    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}\n"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
HELLO = [{"role": "user", "content": "Hello"}]


def template(source, metadata=None):
    metadata = metadata or byte_pairs()
    return ChatTemplate({"tokenizer.chat_template": source}, Tokenizer.from_metadata(metadata), "m.gguf")


def test_chatml():
    assert template(CHATML).render(HELLO) == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert template(CHATML).render(HELLO, ask=False) == "<|im_start|>user\nHello<|im_end|>\n"


def test_what_templates_may_use():
    assert template("{{ bos_token }}{{ eos_token }}").render([]) == "<|start|><|endoftext|>"
    assert template("{{ messages | tojson }}").render([{"role": "é"}]) == '[{"role": "é"}]'
    assert template("{% for m in messages %}{{ m.role }}{% break %}{% endfor %}").render(HELLO * 3) == "user"
    assert template("{{ strftime_now('%Y') }}").render([]).isdigit()


def test_one_begin_token_whether_the_template_writes_it_or_not():
    for source in ("{{ bos_token }}hi", "hi"):
        assert template(source, sentence_piece()).encode(HELLO).count(1) == 1
    assert template("{{ bos_token }}hi", sentence_piece()).encode(HELLO)[0] == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% for %}", "its chat template cannot be read"),
        ("{{ raise_exception('no system messages') }}", "refuses this conversation .no system messages"),
        ("{{ messages[7].role }}", "refuses this conversation"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe|not callable|immutable"),
        ("{{ 'a' * 1000000000 }}", "is too long"),
        ("{{ 10 ** 1000 }}", "a power of 1000 is too large"),
        ("{% for i in range(10000000) %}a{% endfor %}", "Range too big"),
        ("{% for i in range(9999) %}{% for j in range(9999) %}abcdefgh{% endfor %}{% endfor %}", "longer than|ran for more"),
        ("{% set a = range(9999) %}{% for i in a %}{% for j in a %}{% endfor %}{% endfor %}", "it ran for more than 0.2 s"),
    ],
)
def test_a_bad_or_hostile_template_is_one_line(source, message, monkeypatch):
    monkeypatch.setattr(chat, "_SECONDS", 0.2)
    with pytest.raises(MinferError, match=message) as caught:
        template(source).render(HELLO)
    assert "\n" not in str(caught.value)


def test_a_file_without_template_is_refused():
    with pytest.raises(MinferError, match=r"m\.gguf: has no chat template"):
        ChatTemplate({}, Tokenizer.from_metadata(byte_pairs()), "m.gguf")


@pytest.mark.real_model
def test_a_real_template():
    metadata = open_gguf(real_model(SMOLLM2)).metadata
    tokenizer = Tokenizer.from_metadata(metadata)
    real = ChatTemplate(metadata, tokenizer, SMOLLM2)
    text = real.render([{"role": "system", "content": "Be brief."}, *HELLO])
    assert text == "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(real.encode(HELLO), special=True).endswith("Hello<|im_end|>\n<|im_start|>assistant\n")
