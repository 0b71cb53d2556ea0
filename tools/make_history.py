"""Make results folders to develop and measure the dashboard with: a small one with records, and a big one for scale.

    python tools/make_history.py small DIR [--commits 48]
    python tools/make_history.py big DIR [--commits 10000] [--series 200]

Everything in them is made up but the noise: ``tools/noise.npz`` holds the log-residuals (units of 1e-4, against a running
median of 21) of 80 real timing histories (public asv results of pv/numpy-bench, numbers only), drawn here in blocks so
that heavy tails, two levels and autocorrelation stay. Such a folder says in each record that it is made up.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import big_history, small_history


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("small", "big"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commits", type=int)
    parser.add_argument(
        "--series", type=int, default=200, help="benchmark series of a big history (small ones have their own)"
    )
    parser.add_argument(
        "--repository", action="store_true", help="make the parent folder of a big one a git repository of its commits"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.folder.exists() and any(arguments.folder.iterdir()):
        print(f"make_history: {arguments.folder} is not empty; name a new folder", file=sys.stderr)
        return 2
    if arguments.kind == "small":
        small_history.write(arguments.folder, commits=arguments.commits or 48, seed=arguments.seed)
    else:
        count = arguments.commits or 10_000
        big_history.write(arguments.folder, count, arguments.series, arguments.seed, arguments.repository)
    return 0


if __name__ == "__main__":
    sys.exit(main())
