"""What is read of one compiled kernel, and which of two readings is worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

MULTIPROCESSORS: dict[str, tuple[int, int, int, int]] = {
    "sm_80": (65536, 64, 32, 164 * 1024),
    "sm_90a": (65536, 64, 32, 228 * 1024),
    "sm_120": (65536, 48, 24, 100 * 1024),
    "sm_121": (65536, 48, 24, 100 * 1024),
}
"""Registers, warps, blocks and bytes of shared memory of one multiprocessor. Source: CUDA C++ Programming Guide, table of
technical specifications per compute capability."""
_BLOCK_SHARED_OVERHEAD = 1024
"""Bytes that the system takes from each block's shared memory on 8.0 and later."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel for one target. Sizes in bytes."""

    source: str
    kernel: str
    target: str
    registers: int
    """Per thread."""
    spill_bytes: int
    """Stores plus loads that ptxas added for want of registers."""
    stack_bytes: int
    shared_bytes: int
    """Static; what a launch adds is not in the code."""
    threads: int
    """Of a block, by its launch bounds."""
    warps_resident: int
    """Per multiprocessor, limited by registers, static shared memory and blocks."""
    matrix_instructions: int
    matrix_kinds: Mapping[str, int]
    """How many of each: {"HMMA": 128}."""
    loop_per_matrix: float | None
    """Instructions of the main loop per matrix instruction in it; None without one. The main loop is the innermost loop
    that holds the most matrix instructions."""
    code_bytes: int

    @property
    def key(self) -> tuple[str, str]:
        """What names it across commits: kernel and target."""
        return self.kernel, self.target


LOWER_IS_BETTER = ("registers", "spill_bytes", "stack_bytes", "shared_bytes", "loop_per_matrix", "code_bytes")
HIGHER_IS_BETTER = ("warps_resident",)
METRICS = (*LOWER_IS_BETTER, *HIGHER_IS_BETTER)


def resident_warps(target: str, registers: int, shared: int, threads: int) -> int:
    """Warps of one kernel that a multiprocessor holds at once.

    Registers are given out 256 at a time to a warp. Source: the CUDA occupancy calculator's rules.
    """
    all_registers, most_warps, most_blocks, all_shared = MULTIPROCESSORS[target]
    warps = -(-threads // 32)
    by_registers = all_registers // (-(-max(registers, 1) * 32 // 256) * 256) // warps
    by_shared = all_shared // (shared + _BLOCK_SHARED_OVERHEAD)
    return warps * min(most_blocks, most_warps // warps, by_registers, by_shared)


@dataclass(frozen=True, slots=True)
class Change:
    """One metric of one kernel that differs between two commits."""

    kernel: str
    target: str
    metric: str
    before: float
    after: float
    worse: bool


def changes(base: list[KernelFacts], head: list[KernelFacts]) -> list[Change]:
    """Every metric that differs in kernels that both have, the worse ones first. A matrix unit no longer used is worse."""
    old = {facts.key: facts for facts in base}
    found = []
    for facts in head:
        if facts.key not in old:
            continue
        before, after = asdict(old[facts.key]), asdict(facts)
        for metric in METRICS:
            a, b = before[metric], after[metric]
            if a != b and a is not None and b is not None:
                found.append(Change(*facts.key, metric, a, b, (b > a) == (metric in LOWER_IS_BETTER)))
        if before["matrix_instructions"] and not after["matrix_instructions"]:
            found.append(Change(*facts.key, "matrix_instructions", before["matrix_instructions"], 0, True))
    return sorted(found, key=lambda change: (not change.worse, change.kernel, change.target, change.metric))


def to_json(facts: KernelFacts) -> dict[str, object]:
    return asdict(facts)


def from_json(stored: Mapping[str, object]) -> KernelFacts:
    return KernelFacts(**{field.name: stored[field.name] for field in fields(KernelFacts)})  # type: ignore[arg-type]
