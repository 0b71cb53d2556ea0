"""A conversation as the text that a model was trained on: by the Jinja template that its file carries.

The template is a program from outside. It runs in Jinja's sandbox, with a bound on its time and on the length of its text.
What a template may call follows Hugging Face Transformers, for which they are written.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import FrameType
from typing import Any, NoReturn

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .errors import MinferError
from .tokenizer import Tokenizer

Message = Mapping[str, str]
"""{"role": "user", "content": "..."}; roles are system, user and assistant."""

_LONGEST_TEXT = 1 << 24
_SECONDS = 10.0


class ChatTemplate:
    """The template of one file."""

    def __init__(self, metadata: Mapping[str, Any], tokenizer: Tokenizer, file: str) -> None:
        """Raises MinferError where the file has no template or one that is no Jinja."""
        source = metadata.get("tokenizer.chat_template")
        if not isinstance(source, str):
            raise MinferError(f"{file}: has no chat template (tokenizer.chat_template); give a plain prompt, without --chat")
        self._tokenizer, self._file = tokenizer, file
        environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
        try:
            self._template = environment.from_string(source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise MinferError(f"{file}: its chat template cannot be read ({error}); do without --chat") from error

    def render(self, messages: Sequence[Message], *, ask: bool = True) -> str:
        """The text of the conversation; with ``ask``, up to where the assistant's next message begins."""
        vocabulary = self._tokenizer.vocabulary
        texts = {
            f"{name}_token": "" if token is None else vocabulary.tokens[token]
            for name, token in (("bos", vocabulary.bos), ("eos", vocabulary.eos), ("unk", vocabulary.unknown))
        }
        parts: list[str] = []
        length = 0
        try:
            with _deadline(_SECONDS):
                for part in self._template.generate(messages=list(map(dict, messages)), add_generation_prompt=ask, **texts):
                    parts.append(part)
                    length += len(part)
                    if length > _LONGEST_TEXT:
                        raise jinja2.TemplateError(f"its text is longer than {_LONGEST_TEXT} characters")
        except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError,
                MemoryError, TimeoutError) as error:  # fmt: skip
            raise MinferError(f"{self._file}: its chat template refuses this conversation ({error})") from error
        return "".join(parts)

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """The ids of the conversation, up to where the assistant answers; one begin token where the file wants one."""
        ids = self._tokenizer.encode(self.render(messages), add_special=False)
        vocabulary = self._tokenizer.vocabulary
        if vocabulary.add_bos and vocabulary.bos is not None and ids[:1] != [vocabulary.bos]:
            ids.insert(0, vocabulary.bos)
        return ids


class _Sandbox(ImmutableSandboxedEnvironment):
    """Also refuses products of texts and lists that would not fit anywhere."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        for one, other in ((left, right), (right, left)):
            if operator == "*" and isinstance(one, int) and hasattr(other, "__len__") and one * len(other) > _LONGEST_TEXT:
                raise jinja2.TemplateError(f"a product of {one} times {len(other)} items is too long")
        if operator == "**" and isinstance(right, int) and right > 64:
            raise jinja2.TemplateError(f"a power of {right} is too large")
        return super().call_binop(context, operator, left, right)


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """End the body with TimeoutError after ``seconds``, even inside a loop that calls nothing."""
    ends = time.monotonic() + seconds
    before = sys.gettrace()

    def watch(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if time.monotonic() > ends:
            raise TimeoutError(f"it ran for more than {seconds:g} s")
        return watch

    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)


def _to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
