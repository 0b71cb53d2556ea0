"""The asv environment "checkout": measures many commits in this interpreter, with nothing built and nothing fetched.

Each commit is checked out into the environment's own folder and put first on the import path; the interpreter, its packages
and the machine's CUDA stack stay the ones that run asv. asv loads this file as a plugin (asv.conf.json, "plugins").
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from asv import util
from asv.environment import Environment
from asv.machine import Machine

from .asv_machine import register
from .capture.machine import describe_machine, machine_class
from .capture.nvml import first_visible_device
from .models import model_name


def _command_line_option(*names: str) -> str | None:
    """Value of an option of the running asv command, where it is given."""
    arguments = sys.argv[1:]
    for name in names:
        for i, argument in enumerate(arguments):
            if argument == name and i + 1 < len(arguments):
                return arguments[i + 1]
            if argument.startswith(f"{name}="):
                return argument.removeprefix(f"{name}=")
    return None


class Checkout(Environment):  # type: ignore[misc]
    """One interpreter for all commits; the model is part of the environment's name, so that series never mix models."""

    tool_name = "checkout"

    def __init__(self, conf: Any, python: str, requirements: dict[str, str], tagged_env_vars: dict[Any, str]) -> None:
        # Both must stand before the base class asks for the name.
        # A series taken from records belongs to the environment that measured them.
        self._python = os.environ.get("MINFER_ENVIRONMENT_PYTHON") or f"{sys.version_info[0]}.{sys.version_info[1]}"
        self._requirements = {**requirements, "model": model_name(), **_gates()}
        super().__init__(conf, self._python, self._requirements, tagged_env_vars)
        self._global_env_vars["MINFER_MACHINE"] = _command_line_option("--machine", "-m") or machine_name()
        self._global_env_vars["MINFER_RESULTS_DIR"] = str(Path(conf.results_dir).resolve())
        if "--dry-run" in sys.argv or "-n" in sys.argv:
            self._global_env_vars["MINFER_RESULTS_DIR"] = ""

    @classmethod
    def matches(cls, python: str) -> bool:
        return python in ("", "same", f"{sys.version_info[0]}.{sys.version_info[1]}")

    def check_presence(self) -> bool:
        return True

    def create(self) -> None:
        Path(self._path).mkdir(parents=True, exist_ok=True)

    def _setup(self) -> None:
        self.create()

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:
        """Check the commit out, and compile its kernels where a GPU will run them."""
        self.checkout_project(repo, commit_hash)
        compile_kernels(Path(self._build_root))
        self._global_env_vars["MINFER_COMMIT_DATE"] = str(repo.get_date(commit_hash))

    def find_executable(self, executable: str) -> str:
        return sys.executable if executable.startswith("python") else str(util.which(executable))

    def run_executable(self, executable: str, args: list[str], **kwargs: Any) -> Any:
        """Run a program with the commit first on the import path.

        The base class would turn ASV_PYTHONPATH into PYTHONPATH, whose entries asv's own benchmark.py takes off the path
        again (asv 0.6.6); handed over as it is, benchmark.py puts it first.
        """
        environment = {**kwargs.pop("env", os.environ), **self._global_env_vars, "ASV_PYTHONPATH": self._build_root}
        environment.pop("PYTHONPATH", None)
        kwargs.setdefault("timeout", self._install_timeout)
        return util.check_output([self.find_executable(executable), *args], env=environment, **kwargs)

    def run(self, args: list[str], **kwargs: Any) -> Any:
        return self.run_executable("python", args, **kwargs)


_COMPILE = (
    "import sys; from minfer.kernels.build import build_all, target_of; "
    "build_all([target_of(int(sys.argv[1]), int(sys.argv[2]))])"
)


def compile_kernels(checkout: Path) -> None:
    """Compile a commit's kernels for this machine's GPU on all cores; nothing without a GPU, kernels or a need of them.

    Its engine would do so one by one, each at its first use: 20 s of a window in which the device waits. What fails here
    fails there again, with the engine's own message, so nobody needs to hear of it twice.
    """
    needless = os.environ.get("MINFER_BACKEND") == "numpy" or os.environ.get("MINFER_FROM_RECORDS")
    device = None if needless or not (checkout / "minfer" / "kernels" / "build.py").is_file() else first_visible_device()
    capability = None if device is None else device.compute_capability()
    if capability is not None:
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        command = [sys.executable, "-c", _COMPILE, *map(str, capability)]
        subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=False)


def _gates() -> dict[str, str]:
    """Gates set by the environment make series of their own: they are another engine."""
    text = re.sub(r"[^A-Za-z0-9_,]+", "", os.environ.get("MINFER_GATES", "").replace("=", ""))
    return {"gates": text} if text else {}


def machine_name() -> str:
    """The name under which results are kept: MINFER_MACHINE, or the machine's class; never a host name."""
    return os.environ.get("MINFER_MACHINE") or machine_class()


def setup() -> None:
    """What asv calls once it has loaded this plugin: its results go under the machine's class, never under a host's name."""
    Machine.hardcoded_machine_name = machine_name()
    if not os.environ.get("MINFER_FROM_RECORDS"):
        register(describe_machine(_command_line_option("--machine", "-m") or machine_name()))
