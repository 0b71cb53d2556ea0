"""Blocked attention against the plain definition in float64, at the edges of blocks and windows."""

import numpy as np
import pytest

from minfer.backends.attend import Attend
from minfer.backends.pool import Pool


def plain(q, keys, values, position, scale, window, softcap):
    out = np.zeros((q.shape[0], q.shape[1], values.shape[2]))
    for i in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h * keys.shape[0] // q.shape[1]
            first = 0 if window is None else max(0, position + i - window + 1)
            scores = keys[g, first : position + i + 1].astype(np.float64) @ q[i, h] * scale
            scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
            weights = np.exp(scores - scores.max())
            out[i, h] = weights @ values[g, first : position + i + 1] / weights.sum()
    return out.reshape(q.shape[0], -1)


@pytest.mark.parametrize("softcap", [None, 1.5])
@pytest.mark.parametrize("window", [None, 1, 5, 64, 100, 1000])
@pytest.mark.parametrize(("position", "m"), [(0, 1), (0, 64), (0, 130), (63, 2), (100, 1), (70, 129)])
def test_as_the_definition(position, m, window, softcap):
    random = np.random.default_rng(position + m)
    q = random.standard_normal((m, 4, 8)).astype(np.float32)
    keys = random.standard_normal((2, position + m, 8)).astype(np.float32)
    values = random.standard_normal((2, position + m, 6)).astype(np.float32)
    how = (position, 0.7, window, softcap)
    np.testing.assert_allclose(Attend(Pool())(q, keys, values, *how), plain(q, keys, values, *how), atol=1e-5)
