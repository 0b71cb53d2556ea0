from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attribution.classes import classify
from benchmarks.attribution.mangling import MangledNameError, decode
from benchmarks.attribution.symbols import function_name, readable

_PAIRS = [
    (
        "_Z9mul_mat_qIL9ggml_type14ELi128ELb0EL9ggml_prec30EEvPKcPKiS5_S5_PfS6_PKf5uint3iiiiiS9_S9_iiiS9_S9_iiiS9_",
        "void mul_mat_q<(ggml_type)14, (int)128, (bool)0, (ggml_prec)30>(const char *, const int *)",
        "mul_mat_q<(ggml_type)14, 128, false, (ggml_prec)30>",
    ),
    (
        "_Z11k_bin_bcastIXadL_ZN42_INTERNAL_edbefb67_11_binbcast_cu_6840010b6op_addEffEEfffJPKfEEvPKT0_PKT1_PT2_jjj5uint3",
        "void k_bin_bcast<&_INTERNAL_edbefb67_11_binbcast_cu_6840010b::op_add, float, float, float, float const*>(float)",
        "k_bin_bcast<&_INTERNAL_edbefb67_11_binbcast_cu_6840010b::op_add, float, float, float, float const*>",
    ),
    (
        "_Z9rope_neoxILb1ELb0Ef6__halfEvPKT1_PT2_iiiiiiiiiiiPKifff14rope_corr_dimsfPKfPKlib",
        "void rope_neox<true, false, float, __half>(float const*, __half*, int)",
        "rope_neox<true, false, float, __half>",
    ),
    ("_Z13quantize_q8_1PKfPvlllllj5uint3", "quantize_q8_1(float const*, void*, long)", "quantize_q8_1"),
    (
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, "
        "std::array<char *, (unsigned long)1>>(int, T2, T3)",
        "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1>>",
    ),
    (
        "_ZN2at6native12_GLOBAL__N_119CatArrayBatchedCopyIfjLi1ELi128ELi1EEEvPfT0_",
        "void at::native::<unnamed>::CatArrayBatchedCopy<float, unsigned int, (int)1, (int)128, (int)1>(T1 *)",
        "at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, 1>",
    ),
]


@pytest.mark.parametrize(("mangled", "demangled", "expected"), _PAIRS)
def test_both_forms_read_the_same(mangled, demangled, expected):
    assert readable(mangled) == expected
    assert readable(demangled) == expected
    assert readable(expected) == expected


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)", "Kernel2"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, false>(int)", "kernel"),
        ("void at::native::reduce_kernel<512, f(X&)::{lambda(int)#1}::operator()() const::Y>(int)", "reduce_kernel"),
        ("", ""),
    ],
)
def test_the_function_is_found_in_any_dress(symbol, expected):
    assert function_name(symbol) == expected


@pytest.mark.parametrize(
    ("broken", "reads"),
    [
        ("_Z", "_Z"),
        ("_Z9mul", "_Z9mul"),
        ("_Z9mul_mat_qIL9ggml_type14", "mul_mat_q::ggml_type"),
        ("_ZN", "_ZN"),
        ("_ZS9_", "_ZS9_"),
        ("_Z3fooIXdvT_T0_EEvv", "foo"),
        ("main", "main"),
    ],
)
def test_a_name_that_cannot_be_decoded_gives_its_identifiers(broken, reads):
    with pytest.raises(MangledNameError):
        decode(broken)
    assert readable(broken) == reads


@pytest.mark.parametrize(
    "hostile",
    [
        "_Z" + "Z" * 50_000,
        "_Z1fIXadadad" + "ad" * 50_000,
        "_Z" + "9" * 10_000 + "x",
        "_Z1f" + "I" * 50_000,
        "_Z1fI" + "3fooIS_S_E" + "".join(f"3fooIS{step}_S{step}_E" for step in "0123456789ABCDEFGHIJKLMNOPQRST") + "E",
        "void f<" * 20_000 + "(",
    ],
)
def test_a_hostile_symbol_is_read_at_once(hostile):
    assert isinstance(readable(hostile), str)
    assert isinstance(function_name(hostile), str)
    assert classify(hostile)


_MANGLED = [mangled for mangled, _, _ in _PAIRS]
_LETTERS = st.text(alphabet="IEJLNSTXZ_0123abfilv", max_size=6)


@given(st.sampled_from(_MANGLED), st.integers(0, 60), _LETTERS)
def test_a_damaged_symbol_never_raises(mangled, place, damage):
    broken = mangled[:place] + damage + mangled[place + len(damage) :]
    assert isinstance(readable(broken), str)
    assert isinstance(function_name(broken), str)
