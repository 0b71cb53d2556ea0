"""A buffer is used again exactly when nothing refers to it, and what is kept is what was in use at once."""

import numpy as np

from minfer.backends.pool import Pool


def shares(a, b):
    return np.shares_memory(a, b)


def test_a_buffer_in_use_is_never_given_twice():
    pool = Pool()
    held = [pool.take(100, 200) for _ in range(4)]
    assert not any(shares(a, b) for i, a in enumerate(held) for b in held[:i])
    assert pool.nbytes == 4 * 32768 * 4


def test_views_keep_their_buffer():
    pool = Pool()
    array = pool.take(100, 200)
    view = array.reshape(200, 100)[3:, ::2].transpose(1, 0)
    del array
    assert not shares(view, pool.take(100, 200))
    del view
    first = pool.take(20000)
    assert shares(first, pool._buffers[32768][0])
    assert pool.nbytes == 2 * 32768 * 4


def test_an_idle_buffer_serves_other_shapes_of_its_size():
    pool = Pool()
    for shape in ((100, 200), (30000,), (5, 50, 120), (32768,)):
        assert pool.take(*shape).shape == shape
    assert pool.nbytes == 32768 * 4


def test_small_and_huge_arrays_are_not_kept():
    pool = Pool()
    assert pool.take(3, 5).shape == (3, 5)
    assert pool.take((1 << 24) + 1).shape == ((1 << 24) + 1,)
    assert pool.nbytes == 0
