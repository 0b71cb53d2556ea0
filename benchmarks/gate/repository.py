"""What the CI gate asks git: revisions, uncommitted changes, the trailers that accept a regression."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..attribution import git
from ..attribution.git import GitError
from .exits import MachineUnfitError

TRAILER = "Regression-Accepted"


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit, as the user named it and as git knows it."""

    name: str
    commit: str
    subject: str

    @property
    def short(self) -> str:
        """Ten digits: unique in practice, short enough to read."""
        return self.commit[:10]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A commit that says which regression it accepts, and why."""

    commit: str
    reason: str


class Repository:
    """One git repository."""

    def __init__(self, path: Path) -> None:
        """Raises GitError where ``path`` is in no git repository."""
        if not path.is_dir():
            raise GitError(f"{path}: no such folder; name a git checkout with --repository")
        try:
            self.root = Path(run_git(path, "rev-parse", "--show-toplevel"))
        except GitError as error:
            raise GitError(f"{path}: not in a git checkout; name one with --repository") from error

    def git(self, *arguments: str) -> str:
        """Output of one git command, without the last newline. Raises GitError."""
        return run_git(self.root, *arguments)

    def revision(self, name: str) -> Revision:
        """The commit that ``name`` means. Raises GitError where it means none."""
        if name.startswith("-"):
            raise GitError(f"revision {name!r}: a revision cannot start with a dash")
        try:
            commit = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        except GitError as error:
            if not self._succeeds("rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
                raise GitError(f"{self.root}: no commit yet (HEAD is unborn); commit something to measure") from error
            hint = "check the spelling, or git fetch it"
            if self.git("rev-parse", "--is-shallow-repository") == "true":
                hint = "this clone is shallow: git fetch --unshallow (in a CI checkout: fetch-depth: 0)"
            raise GitError(f"revision {name!r}: unknown in {self.root}; {hint}") from error
        return Revision(name, commit, self.git("log", "-1", "--format=%s", commit))

    def uncommitted(self) -> list[str]:
        """Tracked files that differ from HEAD, as paths from the root."""
        output = run_git(self.root, "status", "--porcelain", "--untracked-files=no", "-z", strip=False)
        return [entry[3:] for entry in output.split("\0") if len(entry) > 3]

    def accepted(self, base: str | None, head: str) -> tuple[Accepted, ...]:
        """Every acceptance in base..head, newest first; in all of head's history where ``base`` is None."""
        commits = f"{base}..{head}" if base else head
        template = f"%H%x1f%(trailers:key={TRAILER},valueonly,unfold)%x1e"
        found: list[Accepted] = []
        for entry in self.git("log", f"--format={template}", commits).split("\x1e"):
            commit, _, reasons = entry.strip().partition("\x1f")
            found.extend(Accepted(commit, reason.strip()) for reason in reasons.splitlines() if reason.strip())
        return tuple(found)

    def merge_base(self, one: str, other: str) -> str | None:
        """The commit from which both come; None where their histories share nothing."""
        try:
            return self.git("merge-base", one, other)
        except GitError:
            return None

    @property
    def state_folder(self) -> Path:
        """Inside git's own folder: never part of a commit, never makes a tree dirty."""
        return Path(self.git("rev-parse", "--path-format=absolute", "--git-common-dir")) / "minfer-gate"

    def _succeeds(self, *arguments: str) -> bool:
        try:
            self.git(*arguments)
        except GitError:
            return False
        return True


def run_git(folder: Path, *arguments: str, strip: bool = True) -> str:
    """As ``attribution.git.run_git``; a full disk is no fault of the repository: MachineUnfitError."""
    try:
        return git.run_git(folder, *arguments, strip=strip)
    except GitError as error:
        if any(words in str(error) for words in ("No space left on device", "Disk quota exceeded")):
            raise MachineUnfitError(
                f"{folder}: git {arguments[0]}: no space left on the disk; free some and run again"
            ) from error
        raise
