"""Colours of classes are told apart by every kind of eye, on a light and on a dark ground."""

from itertools import combinations

import numpy as np
import pytest

from dashboard.colours import BETTER, SIDES, WORSE, ink

LARGE = ("q4_K GEMM", "q6_K GEMM", "GEMM", "attention", "activation quantise", "weight dequantise", "norm", "elementwise")
SMALL = ("rope", "kv write", "embedding", "logits", "copy")
# Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009): nobody
# sees less than these, which work on linear light.
SIGHT = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
JUST_SEEN = 2.3
"""CIELAB distance that an eye just notices between fields that touch."""


def light(colour: str) -> np.ndarray:
    """Linear light of "#RRGGBB": shape (3,)."""
    values = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(linear: np.ndarray) -> np.ndarray:
    """CIELAB under D65: shape (3,)."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = to_xyz @ np.clip(linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(a: str, b: str, sight: str) -> float:
    seen = np.array(SIGHT[sight])
    return float(np.linalg.norm(lab(seen @ light(a)) - lab(seen @ light(b))))


@pytest.mark.parametrize("sight", SIGHT)
def test_every_eye_tells_the_large_classes_apart(sight):
    for a, b in combinations(LARGE, 2):
        assert apart(ink(a).colour, ink(b).colour, sight) > 3 * JUST_SEEN, (a, b)
    for a in SMALL:
        for b in (*LARGE, *SMALL):
            assert a == b or apart(ink(a).colour, ink(b).colour, sight) > 2 * JUST_SEEN, (a, b)


@pytest.mark.parametrize("sight", SIGHT)
def test_won_and_lost_and_two_sides_are_far_apart_for_every_eye(sight):
    assert apart(BETTER, WORSE, sight) > 15 * JUST_SEEN
    assert apart(*SIDES, sight) > 15 * JUST_SEEN


@pytest.mark.parametrize("ground", ["#FFFFFF", "#171614"])
def test_large_classes_stand_out_from_the_ground(ground):
    def brightness(colour: str) -> float:
        return float(np.array([0.2126, 0.7152, 0.0722]) @ light(colour)) + 0.05

    for name in LARGE:
        pair = sorted((brightness(ink(name).colour), brightness(ground)))
        # Yellow cannot be as far from white; its bars have darker neighbours.
        least = 1.8 if name in ("activation quantise", "elementwise", "q6_K GEMM") else 2.9
        assert pair[1] / pair[0] >= least, name
