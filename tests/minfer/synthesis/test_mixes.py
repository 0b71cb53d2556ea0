"""The rules give the mixes that llama.cpp gives real files."""

from collections import Counter
from math import prod

import pytest

from minfer.errors import MinferError
from minfer.synthesis.mixes import MIXES, bytes_of, named_mix, type_of, use_more_bits
from minfer.synthesis.shapes import ARCHITECTURES, SHAPES, named_shape, tensors


def types(shape_name, mix_name, architecture=None):
    shape = named_shape(shape_name, architecture)
    return {plan.name: (type_of(plan, shape, named_mix(mix_name)), plan) for plan in tensors(shape)}


def test_the_7b_is_the_file_that_llama_bench_measured():
    chosen = types("qwen2.5-7b", "q4_k_m")
    spared = [name for name, (kind, _) in chosen.items() if kind.name == "Q6_K"]
    assert sum("attn_v" in name for name in spared) == 14
    assert sum("ffn_down" in name for name in spared) == 14
    assert [name for name in spared if "blk" not in name] == ["output.weight"]
    assert sum(bytes_of(plan.shape, kind) for kind, plan in chosen.values()) == 4_677_120_000
    assert sum(prod(plan.shape) for _, plan in chosen.values()) == 7_615_616_512


def test_the_mixture_has_the_parameters_that_its_makers_state():
    assert sum(prod(plan.shape) for plan in tensors(named_shape("qwen3-30b-a3b"))) == 30_532_122_624


def test_rows_that_are_no_whole_blocks_fall_back():
    chosen = types("qwen2.5-0.5b", "q4_k_m")
    counts = Counter(kind.name for kind, _ in chosen.values())
    assert counts == {"Q5_0": 132, "F32": 121, "Q8_0": 13, "Q4_K": 12, "Q6_K": 12}
    assert chosen["token_embd.weight"][0].name == "Q8_0"


def test_which_layers_get_more_bits():
    assert [i for i in range(28) if use_more_bits(i, 28)] == [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 24, 25, 26, 27]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mix", MIXES)
def test_every_tensor_of_every_shape_and_mix_is_whole_blocks(shape, mix):
    for kind, plan in types(shape, mix).values():
        assert bytes_of(plan.shape, kind) > 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_tiny_one_comes_in_every_architecture(architecture):
    assert named_shape("tiny", architecture).architecture == architecture


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: named_shape("huge"), "no shape 'huge'; there are: tiny, "),
        (lambda: named_shape("tiny", "rwkv"), "no architecture 'rwkv'; there are: llama, "),
        (lambda: named_shape("qwen2.5-7b", "llama"), "only tiny comes in others"),
        (lambda: named_mix("q9"), "no mix 'q9'; there are: q4_k_m, "),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(call, message):
    with pytest.raises(MinferError, match=message):
        call()
