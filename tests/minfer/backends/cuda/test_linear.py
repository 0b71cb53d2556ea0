"""How weights lie on the device."""

from __future__ import annotations

import re

import numpy as np
import pytest

from minfer.backends.cuda.linear import as_laid_out
from minfer.kernels import sources_folder
from minfer.quantisation import QUANTISATIONS


def test_q6_k_blocks_begin_at_a_multiple_of_16_and_keep_their_bytes():
    stored = np.arange(2 * 3 * 420, dtype=np.uint32).astype(np.uint8).reshape(2, 3, 420)
    seen = as_laid_out("q6_K", stored)
    assert seen.shape == (2, 3, 448)
    assert (seen.reshape(2, 3, 2, 224)[..., :210] == stored.reshape(2, 3, 2, 210)).all()
    assert not seen.reshape(2, 3, 2, 224)[..., 210:].any()


@pytest.mark.parametrize("kind", ["q4_K", "q5_0", "f16"])
def test_other_types_lie_as_they_are_stored(kind):
    stored = np.arange(288, dtype=np.uint8)[::2].reshape(1, 144)
    seen = as_laid_out(kind, stored)
    assert (seen == stored).all()
    assert seen.flags.c_contiguous


@pytest.mark.parametrize("quantisation", [q for q in QUANTISATIONS.values() if q.block == 256], ids=lambda q: q.name)
def test_a_block_is_as_long_as_the_kernels_take_it_to_be(quantisation):
    source = (sources_folder() / "blocks.cuh").read_text()
    found = re.search(rf"^struct {quantisation.name.upper()} .*?bytes = (\d+);", source, re.DOTALL | re.MULTILINE)
    if found is None:
        pytest.skip(f"no kernel decodes {quantisation.name}")
    assert as_laid_out(quantisation.name, np.zeros((1, quantisation.block_bytes), np.uint8)).shape == (1, int(found[1]))
