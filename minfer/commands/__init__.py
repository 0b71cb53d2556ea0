"""One module for each command of ``minfer``; its file name is the command's name."""

from __future__ import annotations

import argparse
from typing import Protocol


class Command(Protocol):
    """What a command's module offers."""

    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...
