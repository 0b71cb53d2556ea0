"""q4_K and q6_K products unpacked in the kernel against float64 products of the file's own weights."""

from __future__ import annotations

import numpy as np
import pytest

from minfer.backends.cuda import fused
from tests.gpu.support import LENGTHS, distance, random_blocks

SHAPES = [*((m, 330, 512) for m in LENGTHS), (300, 128, 18944), (70, 1030, 768), (512, 3584, 256), (129, 18944, 512)]


@pytest.fixture
def hopper(gpu):
    if gpu.device.target != fused.TARGET:
        pytest.skip(f"these matrix instructions are of compute capability 9.0, this GPU's target is {gpu.device.target}")
    return gpu


def check(hopper, kind, m, n, k):
    random = np.random.default_rng(m + n + k)
    raw, dense = random_blocks(kind, n, k, random)
    x = (random.standard_normal((m, k)) * np.exp(random.standard_normal((m, 1)))).astype(np.float16)
    given = hopper.put(x)
    given.scale = 2.0
    out = hopper.poisoned((m, n), "f16")
    fused.fused(hopper.device, kind, hopper.put(raw).pointer, given, out)
    # Weights rounded three times to f16 (2^-11 each), the result once; f32 sums.
    assert distance(hopper.get(out), 2.0 * x.astype(np.float64) @ dense.astype(np.float64).T) < 1e-3


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("tokens", [64, 128, 256])
@pytest.mark.parametrize("kind", ["q4_K", "q6_K"])
def test_every_tile(hopper, monkeypatch, kind, tokens, split, m, n, k):
    split = split and k >= 512
    parts = (fused.Part(0, n, tokens, split),)
    if n > 1000:
        parts = fused.Part(0, 512, tokens), fused.Part(512, n - 512, 64, split)
    monkeypatch.setattr(fused, "plan", lambda *shape: parts)
    check(hopper, kind, m, n, k)


@pytest.mark.parametrize("kind", ["q4_K", "q6_K"])
@pytest.mark.parametrize(("m", "n", "k"), [(512, 3584, 3584), (512, 18944, 3584), (33, 512, 3584)])
def test_as_planned(hopper, kind, m, n, k):
    check(hopper, kind, m, n, k)


def test_what_does_not_fit_goes_another_way(hopper):
    device = hopper.device
    assert fused.can(device, "q4_K", 330, 512)
    assert fused.can(device, "q6_K", 330, 512)
    assert not fused.can(device, "q5_K", 330, 512)
    assert not fused.can(device, "q4_K", 331, 512)
    assert not fused.can(device, "q4_K", 330, 320)
