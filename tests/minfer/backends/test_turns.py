"""Rotary tables are the angles themselves, however they were asked for."""

import numpy as np

from minfer.backends.turns import Turns
from minfer.rotary import rotary


def test_tables_extend_without_changing():
    turns, layers = Turns(), [rotary(16, base, interleaved=False) for base in (1e4, 1e6)]
    for start, stop in ((0, 3), (3, 4), (2, 9), (50, 51)):
        for layer in layers:
            cosine, sine = turns.at(layer, start, stop)
            angles = np.arange(start, stop)[:, None] * layer.frequencies
            np.testing.assert_allclose(cosine[:, 0], np.cos(angles), atol=1e-7)
            np.testing.assert_allclose(sine[:, 0], np.sin(angles), atol=1e-7)
    assert turns.nbytes == 2 * 2 * 51 * 8 * 4
