"""A toy "minfer" of a few lines, for histories whose commits really differ; tests of the suite measure it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

ENGINE = '''
"""A toy engine: {note}"""
import hashlib
import time
from pathlib import Path
from types import SimpleNamespace

__version__ = "toy"


def load(path, *, backend="auto", ubatch=None, context=None, gates=None):
    {on_load}
    unknown = set(gates or {{}}) - set(Engine.gates)
    if unknown:
        raise ValueError(f"no gate {{unknown.pop()}}")
    engine = Engine(Path(path))
    engine.gates = {{**Engine.gates, **(gates or {{}})}}
    return engine


class Engine:
    gates = {{"toy": True}}
    ubatch = 512
    observer = None
    backend = SimpleNamespace(name="numpy")
    config = SimpleNamespace(vocabulary=1000, architecture="toy")

    def __init__(self, path):
        weight = SimpleNamespace(shape=(64, 32), type=SimpleNamespace(name="q4_K"))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self.file = SimpleNamespace(tensors={{"blk.0.ffn_up.weight": weight}}, digest=lambda: digest)

    def reset(self): pass
    def synchronize(self): pass
    def memory(self): return {{"weights mapped": 100}}

    def prefill(self, tokens):
        for name, kernel_class, seconds in [("ffn_up", "q4_K GEMM", {gemm_s}), ("attention", "attention", 0.001)]:
            operation = SimpleNamespace(name=name, kernel_class=kernel_class, layer=0, m=len(tokens), n=64, k=32,
                                        quantisation="q4_K", macs=len(tokens) * 64 * 32, bytes=1)
            if self.observer:
                self.observer.begin(operation)
            time.sleep(seconds)
            if self.observer:
                self.observer.end(operation)
'''


def engine_source(note: str = "as it is", gemm_s: float = 0.002, on_load: str = "pass") -> str:
    """Source of the toy engine; ``gemm_s`` is how long its product sleeps, ``on_load`` a statement run when it loads."""
    return ENGINE.format(note=note, gemm_s=gemm_s, on_load=on_load)


class ToyRepository:
    """A git repository with this checkout's suite and a toy engine of its own history."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / "benchmarks", folder / "benchmarks", ignore=skip)
        shutil.copy(CHECKOUT / "asv.conf.json", folder)
        (folder / ".gitignore").write_text(".asv/\n__pycache__/\nresults/\n", encoding="utf-8")
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        """Run git there as a fixed author; its standard output."""
        author = ["-c", "user.name=toy", "-c", "user.email=toy@example.invalid"]
        done = subprocess.run(
            ["git", "-C", str(self.folder), *author, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, subject: str, engine: str | None) -> str:
        """Commit with the engine's source given (None: without an engine); the commit's hash."""
        package = self.folder / "minfer"
        if engine is None:
            shutil.rmtree(package, ignore_errors=True)
        else:
            package.mkdir(exist_ok=True)
            (package / "__init__.py").write_text(engine, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")
