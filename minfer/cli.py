"""``minfer <command>``: finds the command's module in ``commands/`` and hands it its arguments.

Adding a command is adding one file there with SUMMARY, add_arguments(parser) and run(args) -> exit code. A user's mistake is
one line and exit code 2; Ctrl-C exits with 130, a reader that closed the pipe with 141, as shells expect.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import commands
from .errors import MinferError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise MinferError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code."""
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # Nothing more can be written: not even what Python flushes as it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _run(arguments: list[str]) -> int:
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__) if not module.name.startswith("_"))
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: minfer COMMAND [--help]\n")
        for name in names:
            print(f"  {name:<10} {_command(name).SUMMARY}")
        return 0
    name = arguments[0]
    if name not in names:
        print(f"minfer: no command {name!r}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    try:
        module = _command(name)
        parser = _Parser(prog=f"minfer {name}", description=module.SUMMARY)
        module.add_arguments(parser)
        return module.run(parser.parse_args(arguments[1:]))
    except MinferError as error:
        print(f"minfer {name}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"\nminfer {name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"minfer {name}: {where}{error.strerror or error}; check the disk and the permissions", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"minfer {name}: out of memory ({error or 'no more said'}); give a smaller model or context", file=sys.stderr)
        return 2


def _command(name: str) -> commands.Command:
    return importlib.import_module(f".commands.{name}", __package__)


if __name__ == "__main__":
    sys.exit(main())
