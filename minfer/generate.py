"""Generation: a prompt in, text out as it comes, until a token, a text, a count or the context ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import MinferError
from .sampling import Sampler
from .tokenizer import Tokenizer


class LanguageModel(Protocol):
    """What generation needs of an engine."""

    @property
    def context(self) -> int:
        """Most tokens that fit."""
        ...

    def prefill(self, tokens: Sequence[int]) -> NDArray[np.float32]: ...

    def decode(self, token: int) -> NDArray[np.float32]: ...


class Generation:
    """One continuation of one prompt. Iterate over it for the text; the rest says how it went."""

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        sampler: Sampler,
        *,
        limit: int | None = None,
        stops: Sequence[str] = (),
        special: bool = False,
        ignore_end: bool = False,
    ) -> None:
        """``limit``: most tokens; None for as many as fit. ``stops``: texts that end it and are not given out. ``special``
        gives out control tokens as text. ``ignore_end`` goes on after tokens that end a generation."""
        if not prompt:
            raise MinferError("the prompt has no tokens; give at least one character")
        if any(not stop for stop in stops):
            raise MinferError("a stop text is empty; give at least one character")
        self._model, self._tokenizer, self._sampler = model, tokenizer, sampler
        self._stops, self._special, self._ignore_end = tuple(stops), special, ignore_end
        self.prompt = list(prompt)
        self.limit = limit
        self.tokens: list[int] = []
        """Generated so far; an ending token is the last of them."""
        self.reason = ""
        """Why it ended: "end token", "stop text", "limit", "context"; empty before."""
        self.prefill_ns = 0
        self.decode_ns = 0
        """Of all decode calls: one fewer than the tokens."""

    def __iter__(self) -> Iterator[str]:
        began = time.perf_counter_ns()
        logits = self._model.prefill(self.prompt)
        self.prefill_ns = time.perf_counter_ns() - began
        stream = self._tokenizer.stream(special=self._special)
        held = ""
        while not self.reason:
            if self.limit is not None and len(self.tokens) >= self.limit:
                self.reason = "limit"
                break
            token = self._sampler.choose(logits)
            self.tokens.append(token)
            if token in self._tokenizer.ends and not self._ignore_end:
                self.reason = "end token"
                held += stream.push(token) if self._special else ""
                break
            text, held, stopped = self._release(held + stream.push(token))
            if text:
                yield text
            if stopped:
                self.reason = "stop text"
                return
            if len(self.prompt) + len(self.tokens) > self._model.context:
                self.reason = "context"
            elif self.limit is None or len(self.tokens) < self.limit:
                began = time.perf_counter_ns()
                logits = self._model.decode(token)
                self.decode_ns += time.perf_counter_ns() - began
        text, held, stopped = self._release(held + stream.finish())
        if text + held:
            yield text + ("" if stopped else held)

    def _release(self, text: str) -> tuple[str, str, bool]:
        """What may be given out, what must wait since a stop text may have begun in it, and whether one is complete."""
        found = [at for at in (text.find(stop) for stop in self._stops) if at >= 0]
        if found:
            return text[: min(found)], "", True
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        for start in range(max(0, len(text) - longest), len(text)):
            if any(stop.startswith(text[start:]) for stop in self._stops):
                return text[:start], text[start:], False
        return text, "", False
