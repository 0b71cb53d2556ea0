"""Git histories of a tiny engine whose commits really do more or less work.

The engine counts its own steps; a sample's seconds are the steps it took times 1 us, times noise seeded by arm and pair.
So the tests do not depend on the machine, and a commit is slower exactly because its code does more.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

WORKLOAD = "tinyengine.bench:sample"

CLOCK = """
steps = {}


def work(kernel_class, count):
    for _ in range(count):
        steps[kernel_class] = steps.get(kernel_class, 0) + 1
"""

MODEL = """
from .clock import work


def prefill():
    work("matmul", 1000)
    work("attention", 400)
    work("norm", 50)
"""

BENCH = """
import random
import zlib

from . import clock
from .model import prefill


def sample(request):
    random.seed(zlib.crc32(f"{request.arm} {request.replicate}".encode()))
    clock.steps.clear()
    prefill()
    spread = float(request.parameters.get("spread", "0.002"))
    times = {name: steps * 1e-6 * random.lognormvariate(0, spread) for name, steps in clock.steps.items()}
    return {"prefill@64/wall": sum(times.values()), **{f"prefill@64/{name}": t for name, t in times.items()}}
"""


@dataclass(frozen=True)
class History:
    """A repository and its commits by the name the test gave them."""

    root: Path
    commits: dict[str, str]

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def commit(self, name: str, files: dict[str, str], message: str | None = None) -> str:
        for path, text in files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message or name)
        self.commits[name] = self.git("rev-parse", "HEAD")
        return self.commits[name]

    def worktrees(self) -> int:
        return self.git("worktree", "list", "--porcelain").count("worktree ")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def empty(folder: Path) -> History:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return History(folder, {})


def engine(folder: Path) -> History:
    """One commit without the workload ("old"), then one with it ("base")."""
    history = empty(folder)
    history.commit("old", {"tinyengine/__init__.py": "", "README": "tiny\n"})
    history.commit("base", {"tinyengine/clock.py": CLOCK, "tinyengine/model.py": MODEL, "tinyengine/bench.py": BENCH})
    return history


def model(**steps: int) -> dict[str, str]:
    """The model's file with other amounts of work per class."""
    amounts = {"matmul": 1000, "attention": 400, "norm": 50} | steps
    lines = [f'    work("{name}", {count})' for name, count in amounts.items() if count]
    return {"tinyengine/model.py": "\n".join(["from .clock import work", "", "", "def prefill():", *lines, ""])}
