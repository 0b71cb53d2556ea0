"""Answers that are kept: what was asked a moment ago is asked again with the next click."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """The last few answers to one kind of question; for all threads of the process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], T]) -> T:
        """The answer to ``key``, made where it is not kept. Two threads may make it both; an exception keeps nothing."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        made = make()
        with self._lock:
            self._answers[key] = made
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return made
