"""Reading nvdisasm's listing, on text, and a real cubin."""

from __future__ import annotations

import pytest

from benchmarks.static import sass
from benchmarks.static.sass import disassembled, read_cubin
from minfer.kernels import build, nvrtc

LISTING = """
.text.first:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   LDSM.16.M88.4 R4, [R2] ;
        /*0020*/                   HMMA.16816.F32 R8, R4, R6, R8 ;
.L_x_1:
        /*0030*/                   HMMA.16816.F32 R8, R4, R6, R8 ;
        /*0040*/                   IADD3 R3, R3, -0x1, RZ ;
        /*0050*/               @P0 BRA `(.L_x_1) ;
        /*0060*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0070*/              @!P1 BRA `(.L_x_0) ;
        /*0080*/                   EXIT ;
.L_x_2:
        /*0090*/                   BRA `(.L_x_2);
        /*00a0*/                   NOP;
.text.second:
        /*0000*/                   MOV R1, R2 ;
        /*0010*/              @UP0 BRA `(.L_x_9) ;
.L_x_9:
        /*0020*/                   EXIT ;
"""


def test_kernels_loops_and_padding_are_told_apart():
    found = disassembled(LISTING)
    assert list(found) == ["first", "second"]
    assert found["first"].opcodes[-1] == "EXIT"
    assert len(found["first"].opcodes) == 9
    assert found["first"].loops == [(3, 5), (1, 7), (9, 9)]
    # A branch forward is no loop.
    assert found["second"].loops == []


def test_the_main_loop_holds_the_most_matrix_instructions():
    assert sass._loop_per_matrix(disassembled(LISTING)["first"]) == 7 / 2
    assert sass._loop_per_matrix(disassembled(LISTING)["second"]) is None


SOURCE = """
extern "C" __global__ void __launch_bounds__(96) plain(float* x) { __shared__ float y[96]; y[threadIdx.x] = x[0];
    __syncthreads(); x[threadIdx.x] = y[95 - threadIdx.x]; }
extern "C" __global__ void __launch_bounds__(1024) cramped(float* x) {
    float v[128];
#pragma unroll
    for (int i = 0; i < 128; i++) v[i] = x[i * 1024 + threadIdx.x];
    for (int step = 0; step < (int)x[0]; step++) {
#pragma unroll
        for (int i = 0; i < 128; i++) v[i] = v[i] * v[(i + 1) % 128] + 1.0f;
    }
#pragma unroll
    for (int i = 0; i < 128; i++) x[i * 1024 + threadIdx.x] = v[i]; }
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "two.cu").write_text(SOURCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINFER_KERNEL_CACHE", str(folder / "cache"))
        found = []
        for target in build.TARGETS:
            cubin = build.build("two", target, folder)
            found += read_cubin(cubin.path, cubin.log, "two", target)
    return {one.key: one for one in found}


@pytest.mark.parametrize("target", build.TARGETS)
def test_a_real_cubin_gives_threads_shared_memory_and_spills(facts, target):
    plain, cramped = facts["plain", target], facts["cramped", target]
    assert (plain.threads, cramped.threads) == (96, 1024)
    assert plain.shared_bytes == 96 * 4
    assert plain.spill_bytes == plain.stack_bytes == 0
    # 1024 threads leave 64 registers each for 128 values.
    assert cramped.registers <= 64
    assert cramped.spill_bytes > 0
    assert cramped.stack_bytes > 0
    assert plain.matrix_instructions == 0
    assert plain.loop_per_matrix is None
    assert 0 < plain.code_bytes < cramped.code_bytes


def test_a_source_compiled_on_all_cores_is_the_same_machine_code_as_on_one(tmp_path, monkeypatch):
    if not nvrtc._on_all_cores():
        pytest.skip("this NVRTC compiles a source on one core")
    parallel = _listed(tmp_path / "all", monkeypatch)
    monkeypatch.setattr(nvrtc, "_on_all_cores", lambda: ())
    single = _listed(tmp_path / "one", monkeypatch)
    assert parallel == single
    assert len(single[0]) > 1


def _listed(folder, monkeypatch):
    """A source of several kernels, compiled anew: its facts, of which some come from ptxas's log, and its instructions."""
    monkeypatch.setenv("MINFER_KERNEL_CACHE", str(folder))
    cubin = build.build("experts", "sm_90a")
    listing = sass._run(sass.tool("nvdisasm"), "-c", str(cubin.path))
    return read_cubin(cubin.path, cubin.log, "experts", "sm_90a"), listing


def test_a_file_that_is_no_cubin_is_one_line(tmp_path):
    (tmp_path / "broken.cubin").write_bytes(b"no elf")
    (tmp_path / "broken.log").write_text("")
    with pytest.raises(sass.StaticToolError, match=r"broken\.cubin"):
        read_cubin(tmp_path / "broken.cubin", tmp_path / "broken.log", "broken", "sm_80")


def test_a_missing_tool_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sass.sys, "path", [])
    monkeypatch.setattr(sass.shutil, "which", lambda name: None)
    with pytest.raises(sass.StaticToolError, match="pip install nvidia-cuda-nvdisasm"):
        sass.tool("nvdisasm")
