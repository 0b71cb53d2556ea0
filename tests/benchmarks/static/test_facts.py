"""Occupancy, and the verdict between two commits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.static.facts import KernelFacts, changes, from_json, resident_warps, to_json

FACTS = KernelFacts("attention", "minfer_attention_fa_128", "sm_90a", 240, 0, 0, 0, 128, 8, 128, {"HMMA": 128}, 8.05, 29216)


@pytest.mark.parametrize(
    ("target", "registers", "shared", "threads", "warps"),
    [
        # The CUDA occupancy calculator's answers.
        ("sm_90a", 32, 0, 256, 64),
        ("sm_90a", 255, 0, 128, 8),
        ("sm_90a", 168, 0, 128, 12),
        ("sm_80", 32, 100 * 1024, 256, 8),
        ("sm_120", 32, 0, 32, 24),
        ("sm_120", 40, 0, 256, 48),
        ("sm_80", 33, 0, 1024, 32),
    ],
)
def test_resident_warps(target, registers, shared, threads, warps):
    assert resident_warps(target, registers, shared, threads) == warps


@pytest.mark.parametrize(
    ("changed", "worse"),
    [
        ({"registers": 241}, True), ({"registers": 239}, False), ({"spill_bytes": 4}, True), ({"warps_resident": 7}, True),
        ({"warps_resident": 9}, False), ({"loop_per_matrix": 8.06}, True), ({"code_bytes": 29200}, False),
        ({"matrix_instructions": 0, "loop_per_matrix": None}, True),
    ],
)  # fmt: skip
def test_any_rise_is_a_verdict(changed, worse):
    (found,) = changes([FACTS], [replace(FACTS, **changed)])
    assert found.worse is worse
    assert found.metric == next(iter(changed))


def test_nothing_changed_is_no_verdict():
    assert changes([FACTS], [FACTS]) == []


def test_a_kernel_that_only_one_commit_has_is_not_compared():
    assert changes([FACTS], [replace(FACTS, kernel="minfer_attention_fa_64", registers=255)]) == []


def test_facts_survive_being_kept():
    assert from_json(to_json(FACTS)) == FACTS
