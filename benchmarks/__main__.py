"""``python -m benchmarks <command>``: finds the command's module in ``commands/`` and hands it its arguments.

Adding a command is adding one file there with SUMMARY, add_arguments(parser) and run(args) -> exit code.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys

from . import commands
from .attribution.errors import UserFacingError


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns its exit code; 2 where the command line itself is wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m benchmarks COMMAND [--help]\n")
        for name in names:
            print(f"  {name:<12} {_command(name).SUMMARY}")
        return 0
    name = arguments[0]
    if name not in names:
        print(f"benchmarks: no command {name!r}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    module = _command(name)
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=module.SUMMARY)
    module.add_arguments(parser)
    try:
        code: int = module.run(parser.parse_args(arguments[1:]))
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads the answer has seen enough (| head): nothing is left to say, at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print(f"benchmarks {name}: interrupted", file=sys.stderr)
        return 130
    except UserFacingError as error:
        print(f"benchmarks {name}: {error}", file=sys.stderr)
        return error.exit_code
    return code


def _command(name: str) -> commands.Command:
    return importlib.import_module(f".commands.{name}", __package__)


if __name__ == "__main__":
    sys.exit(main())
