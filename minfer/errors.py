"""The one kind of error that reaches a user as a line instead of a traceback."""

from __future__ import annotations


class MinferError(ValueError):
    """Its text is one line: what, where, seen, expected, what to do. The command line prints it and exits with 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
