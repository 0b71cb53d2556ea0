"""A plan covers every row once, and no other one is faster by its own measure."""

from __future__ import annotations

import pytest

from minfer.backends.cuda import fused

H200 = 132
MATRICES = ((3584, 3584), (512, 3584), (18944, 3584), (3584, 18944), (130, 256))
SHAPES = [(m, n, k) for m in (5, 64, 129, 512, 3325) for n, k in MATRICES]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_every_row_is_multiplied_once(m, n, k):
    parts = fused.plan(m, n, k, H200)
    assert [part.first for part in parts] == [0, *(part.first + part.rows for part in parts)][:-1]
    assert sum(part.rows for part in parts) == n
    assert all(part.tokens in fused.STEP_NS for part in parts)
    assert not any(part.split for part in parts) or k >= 512


def test_few_tiles_are_split_and_a_last_wave_is_not_left_half_empty():
    assert fused.plan(512, 3584, 18944, H200) == (fused.Part(0, 3584, 256, split=True),)
    first, rest = fused.plan(512, 18944, 3584, H200)
    assert first.tiles(512) % H200 == 0
    assert rest.tiles(512) * (2 if rest.split else 1) <= H200


def test_a_long_prompt_takes_the_largest_tile():
    assert fused.plan(3325, 18944, 3584, H200)[0].tokens == 256
