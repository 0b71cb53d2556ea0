"""What a series stores is what the record says, with the peer at its best and rounds divided by rounds."""

from dataclasses import replace

import pytest

from benchmarks import series
from benchmarks.series_values import values_of
from tests.benchmarks.report.test_record_text import record, wall

OURS = wall("minfer", 40.0, (50.0, 52.0, 48.0), peak_memory_bytes=1000)


def test_each_value_of_the_engines_own_wall():
    values = values_of(record(OURS))
    assert values["seconds_per_token 512"]["samples"] == pytest.approx([0.050 / 512, 0.052 / 512, 0.048 / 512])
    assert values["gap_ms 512"] == 5.0
    assert values["peak_memory_bytes 512"] == 1000
    assert values["tracer_cost 512"] == pytest.approx(45 / 50)
    assert values["class_ms 512 q4_K GEMM"]["samples"] == [40.0, 40.0, 40.0]
    assert values["us_per_gmac 512 q4_K GEMM"]["samples"] == pytest.approx([20_000.0] * 3)
    assert not any(name.startswith(("time_ratio", "cost_ratio", "peer")) for name in values)


def test_a_round_is_divided_by_its_own_round_against_the_fastest_ubatch():
    slow = wall("llama.cpp", 20.0, (99.0, 99.0, 99.0), ubatch=256)
    fast = wall("llama.cpp", 20.0, (25.0, 26.0, 96.0), ubatch=512)
    values = values_of(record(OURS, slow, fast))
    assert values["time_ratio 512"]["samples"] == [2.0, 2.0, 0.5]
    assert values["cost_ratio 512 q4_K GEMM"] == 2.0


def test_samples_that_were_not_taken_in_turn_give_one_ratio_of_medians():
    alone = wall("llama.cpp", 20.0, (25.0, 25.0))
    assert values_of(record(OURS, alone))["time_ratio 512"] == 2.0


def test_a_wall_that_was_not_decomposed_has_no_class():
    bare = replace(OURS, decomposition=None)
    assert set(values_of(record(bare))) == {"seconds_per_token 512", "peak_memory_bytes 512", "tracer_cost 512"}


def test_what_is_absent_is_not_a_number():
    assert series.samples([]) != series.samples([])
