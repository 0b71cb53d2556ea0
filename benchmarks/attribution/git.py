"""The one place that runs git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .errors import UserFacingError


class GitError(UserFacingError):
    """git could not answer; the line carries its own words."""


def run_git(folder: Path, *arguments: str, strip: bool = True, timeout_s: float | None = None) -> str:
    """Standard output of one git command in ``folder``, without the last newline unless ``strip`` is false. Bytes that are
    no UTF-8 come as replacement characters. Raises GitError."""
    # A hook runs with GIT_DIR and friends set to the repository that called it; they would point git elsewhere.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment["LC_ALL"] = "C"
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", *arguments]
    if not folder.is_dir():
        raise GitError(f"{folder}: no such folder; name a git checkout")
    try:
        # Its own session: Ctrl-C reaches us, who clean up, and not a git in the middle of writing.
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, start_new_session=True, timeout=timeout_s, check=False
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed or not on the path; install git") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"{folder}: git {_verb(arguments)} took over {timeout_s:.0f} s; name a shorter range") from error
    if done.returncode != 0:
        words = " ".join(done.stderr.decode("utf-8", "replace").split()) or f"exit code {done.returncode}"
        raise GitError(f"{folder}: git {_verb(arguments)}: {words[-400:]}")
    output = done.stdout.decode("utf-8", "replace")
    return output.rstrip("\n") if strip else output


def _verb(arguments: tuple[str, ...]) -> str:
    """"revert" of ("-c", "user.name=x", "revert", ...): git's own words name the revision or path that it refuses."""
    before = ("", *arguments)
    return next((word for last, word in zip(before, arguments, strict=False) if word[:1] != "-" and last != "-c"), "")
