"""How the kernels decode quantised blocks, run on the host: kernels/blocks.cuh is plain C++ once its header is."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from minfer.backends.cuda.launch import DECODED
from minfer.kernels import sources_folder
from tests.gpu.support import random_blocks

PROGRAM = """
#include "common.cuh"
#include "blocks.cuh"
template <class T> void all(const u8* raw, float* out, long long count) {
    for (long long i = 0; i < count; i += 8) {
        int within;
        const u8* block = block_of<T>(raw, i, within);
        T::decode8(block, within, out + i);
    }
}
#define VARIANT(name, type) extern "C" void decode_##name(const u8* raw, float* out, long long n) { all<type>(raw, out, n); }
EACH_WEIGHT_TYPE(VARIANT)
"""


@pytest.fixture(scope="module")
def decoders(tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: install g++ to check the decoding of blocks without a GPU")
    folder = tmp_path_factory.mktemp("blocks")
    (folder / "blocks.cpp").write_text(PROGRAM)
    # The stand-in for common.cuh must be found first, so blocks.cuh is taken from a copy beside it.
    shutil.copy(Path(__file__).parent / "host" / "common.cuh", folder)
    shutil.copy(sources_folder() / "blocks.cuh", folder)
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-o", "blocks.so", "blocks.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "blocks.so"))


@pytest.mark.parametrize("kind", DECODED)
def test_a_block_decodes_to_what_ggml_means(decoders, kind):
    raw, dense = random_blocks(kind, 13, 512, np.random.default_rng(7))
    out = np.full(dense.shape, np.nan, np.float32)
    getattr(decoders, f"decode_{kind}")(
        raw.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_longlong(out.size)
    )
    np.testing.assert_allclose(out, dense, rtol=2e-6, atol=2e-6 * np.abs(dense).max())
