"""``python -m minfer.kernels TARGET...``: compile every kernel and print where the cubins are, as JSON lines."""

from __future__ import annotations

import json
import sys

from . import KernelError
from .build import TARGETS, build_all


def main(targets: list[str]) -> int:
    """Print one line a cubin: source, target, path, log. 1 with one line on stderr where a kernel does not compile."""
    try:
        cubins = build_all(targets or TARGETS)
    except KernelError as error:
        print(f"minfer.kernels: {error}", file=sys.stderr)
        return 1
    for cubin in cubins:
        print(json.dumps({"source": cubin.source, "target": cubin.target, "path": str(cubin.path), "log": str(cubin.log)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
