"""Device arrays and the arena, on made-up addresses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from minfer.backends.cuda.arrays import Arena, DeviceArray


@pytest.fixture
def arena():
    given = []

    def allocate(size):
        given.append(size)
        return SimpleNamespace(pointer=len(given) << 32)

    return Arena(allocate)


def test_arrays_given_out_do_not_overlap(arena):
    first, second = arena.take((3, 5), "f16"), arena.take((7,), "f32")
    assert second.pointer >= first.pointer + first.nbytes
    assert first.pointer % 256 == second.pointer % 256 == 0


def test_a_second_pass_gets_the_same_addresses(arena):
    def one_pass():
        arena.settle()
        return [arena.take((1 << size,), "f32").pointer for size in (10, 22, 12)]

    one_pass()
    joined, generation = one_pass(), arena.generation
    assert one_pass() == joined
    assert arena.generation == generation


def test_release_takes_back_what_was_given_since_the_mark(arena):
    kept = arena.take((64,), "f32")
    mark = arena.mark()
    gone = arena.take((64,), "f32")
    arena.release(mark)
    assert arena.take((64,), "f32").pointer == gone.pointer != kept.pointer


def test_joining_chunks_changes_the_generation(arena):
    arena.take((1 << 20,), "f32")
    arena.take((1 << 22,), "f32")
    before, size = arena.generation, arena.nbytes
    arena.settle()
    assert arena.generation > before
    assert arena.nbytes == size


def test_reshape_and_rows_keep_the_memory():
    array = DeviceArray(0x1000, (6, 8), "f16", scale=16.0)
    assert array.reshape(3, -1).shape == (3, 16)
    assert array.rows(4) .pointer == 0x1000 + 4 * 8 * 2
    assert array.rows(4).shape == (2, 8)
    assert array.rows(4).scale == 16.0
    with pytest.raises(ValueError, match="cannot become"):
        array.reshape(5, 5)
