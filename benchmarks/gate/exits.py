"""The exit codes of ``gate`` and ``bisect``, and the errors that carry them. docs/gate.md tells users the same table."""

from __future__ import annotations

from enum import IntEnum

from ..attribution.errors import UserFacingError


class Exit(IntEnum):
    """One code a cause, so that a pipeline never reads a broken run as a slow commit."""

    PASSED = 0
    REGRESSED = 1
    FAILED = 2
    """A benchmark failed, or the command could not be carried out as given."""
    NOTHING_MEASURED = 3
    UNDECIDED = 4
    UNFIT = 5
    """The machine is not fit to measure: not alone, throttled, clocks drifting, disk full."""
    INTERRUPTED = 130


MEANING = {
    Exit.PASSED: "no metric is slower by its margin or more",
    Exit.REGRESSED: "a metric is slower by more than its margin or a kernel compiles worse, and no commit accepts it",
    Exit.FAILED: "a benchmark failed, or the command could not be carried out as given",
    Exit.NOTHING_MEASURED: "nothing measured: there was nothing to compare",
    Exit.UNDECIDED: "undecided: the time budget ended before the pairs could tell",
    Exit.UNFIT: "the machine is not fit to measure",
    Exit.INTERRUPTED: "interrupted; --resume continues",
}


class BenchmarkFailedError(UserFacingError):
    """A process of one arm crashed, hung or measured another checkout than its own."""

    exit_code = int(Exit.FAILED)


class NothingMeasuredError(UserFacingError):
    """There is nothing to compare."""

    exit_code = int(Exit.NOTHING_MEASURED)


class MachineUnfitError(UserFacingError):
    """This machine cannot measure now."""

    exit_code = int(Exit.UNFIT)
