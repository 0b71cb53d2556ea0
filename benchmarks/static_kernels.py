"""What the compiler made of each source of kernels, commit by commit; no GPU is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

SOURCES = (
    "add", "attention", "attention_hopper", "bt", "dequantise", "embedding", "expert_fused", "expert_gemm", "experts",
    "fused", "gated_activation", "kv_write", "mmq", "mmv", "quantise", "rms_norm", "rope", "state",
)  # fmt: skip
"""Sources that have a series; a commit that lacks one is n/a for it."""
TARGETS = ("sm_80", "sm_90a", "sm_120", "sm_121")


def measured_checkout() -> Path:
    """The checkout under measurement: asv's word for it, else this one."""
    named = os.environ.get("ASV_PYTHONPATH", "").split(os.pathsep)[0]
    return Path(named) if named else Path(__file__).resolve().parents[1]


class StaticKernels:
    """The worst kernel of each source, for each target: one that spills is not made good by twenty that do not."""

    params = (SOURCES, TARGETS)
    param_names = ("source", "target")
    timeout = 900

    def setup_cache(self) -> dict[str, Any]:
        from .attribution.errors import UserFacingError
        from .static.collect import collect
        from .static.facts import to_json

        try:
            return {"kernels": [to_json(facts) for facts in collect(measured_checkout())]}
        except UserFacingError as error:
            return {"skipped": str(error)}

    setup_cache.timeout = 900  # type: ignore[attr-defined]

    def setup(self, cache: dict[str, Any], source: str, target: str) -> None:
        if "skipped" in cache:
            raise NotImplementedError(cache["skipped"])
        self.kernels = [one for one in cache["kernels"] if (one["source"], one["target"]) == (source, target)]
        if not self.kernels:
            raise NotImplementedError(f"this commit has no kernels/{source}.cu")

    def each(self, metric: str) -> list[int]:
        return [int(one[metric]) for one in self.kernels]

    def track_registers(self, cache: dict[str, Any], source: str, target: str) -> int:
        return max(self.each("registers"))

    def track_spill_bytes(self, cache: dict[str, Any], source: str, target: str) -> int:
        return sum(self.each("spill_bytes"))

    def track_stack_bytes(self, cache: dict[str, Any], source: str, target: str) -> int:
        return max(self.each("stack_bytes"))

    def track_shared_bytes(self, cache: dict[str, Any], source: str, target: str) -> int:
        return max(self.each("shared_bytes"))

    def track_warps_kept_out(self, cache: dict[str, Any], source: str, target: str) -> int:
        """Places for warps that a multiprocessor offers and registers or shared memory keep empty: lower is better."""
        from .static.facts import MULTIPROCESSORS

        return MULTIPROCESSORS[target][1] - min(self.each("warps_resident"))

    def track_code_bytes(self, cache: dict[str, Any], source: str, target: str) -> int:
        return sum(self.each("code_bytes"))

    def track_loop_per_matrix(self, cache: dict[str, Any], source: str, target: str) -> float:
        loops = [one["loop_per_matrix"] for one in self.kernels if one["loop_per_matrix"] is not None]
        if not loops:
            raise NotImplementedError(f"kernels/{source}.cu uses no matrix unit in a loop")
        return float(max(loops))


def _describe(function: Any, unit: str) -> None:
    function.unit, function.direction, function.version = unit, "lower", "1"


_describe(StaticKernels.track_registers, "registers/thread")
_describe(StaticKernels.track_spill_bytes, "bytes")
_describe(StaticKernels.track_stack_bytes, "bytes")
_describe(StaticKernels.track_shared_bytes, "bytes/block")
_describe(StaticKernels.track_warps_kept_out, "warps/multiprocessor")
_describe(StaticKernels.track_code_bytes, "bytes")
_describe(StaticKernels.track_loop_per_matrix, "instructions")
