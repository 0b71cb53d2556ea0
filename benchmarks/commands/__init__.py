"""One module a command. Each is imported only when it is run."""

from __future__ import annotations

import argparse
from typing import Protocol


class Command(Protocol):
    """What a module in this folder offers."""

    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...
