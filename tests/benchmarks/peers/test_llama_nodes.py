"""A ggml node becomes the class and the MACs that the engine would give the same work."""

import ctypes as c
from types import SimpleNamespace

import pytest

from benchmarks.peers.llama_library import Tensor
from benchmarks.peers.llama_nodes import label_node

TYPES = {0: b"f32", 12: b"q4_K", 14: b"q6_K"}


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, sources: tuple = ()) -> Tensor:
    made = Tensor(type=kind, name=name.encode())
    for i in range(4):
        made.ne[i] = shape[i] if i < len(shape) else 1
    for i, source in enumerate(sources):
        made.src[i] = c.addressof(source)
    return made


def label(node: Tensor, operation: str):
    lib = SimpleNamespace(
        ggml_op_desc=lambda address: operation.encode(),
        ggml_type_name=lambda kind: TYPES[kind],
        ggml_nbytes=lambda address: 4,
    )
    return label_node(lib, node, c.addressof(node))


def test_a_product_by_a_weight_is_that_types_gemm():
    weight = tensor("blk.3.ffn_down.weight", (2048, 640), 14)
    inputs = tensor("ffn_geglu-3", (2048, 512))
    found = label(tensor("ffn_out-3", (640, 512), sources=(weight, inputs)), "MUL_MAT")
    assert (found.kernel_class, found.name, found.layer) == ("q6_K GEMM", "ffn_down", 3)
    assert (found.m, found.n, found.k, found.macs) == (512, 640, 2048, 512 * 640 * 2048)


@pytest.mark.parametrize("head", ["output.weight", "token_embd.weight"])
def test_the_output_head_is_logits_tied_or_not(head):
    weight = tensor(head, (640, 262144), 12)
    found = label(tensor("result_output", (262144, 1), sources=(weight, tensor("norm", (640, 1)))), "MUL_MAT")
    assert (found.kernel_class, found.layer, found.macs) == ("logits", None, 262144 * 640)


def test_a_product_of_two_activations_is_attention_and_counts_no_macs():
    # The mask keeps only part of the square, so the graph's shapes do not say how much work it is.
    keys = tensor("cache_k_l2 (view)", (256, 768))
    found = label(tensor("kq-2", (768, 512, 4), sources=(keys, tensor("q-2", (256, 512, 4)))), "MUL_MAT")
    assert (found.kernel_class, found.layer, found.macs) == ("attention", 2, None)


def test_the_multiplication_of_a_norm_is_norm_and_any_other_is_elementwise():
    gain = tensor("blk.0.attn_norm.weight", (640,))
    normed = tensor("norm-0", (640, 512))
    assert label(tensor("attn_norm-0", (640, 512), sources=(normed, gain)), "MUL").kernel_class == "norm"
    assert label(tensor("x-0", (640, 512), sources=(normed, normed)), "MUL").kernel_class == "elementwise"


@pytest.mark.parametrize("operation", ["RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE", "NONE"])
def test_a_view_is_no_work(operation):
    assert label(tensor("x", (4,)), operation) is None


def test_an_unknown_operation_stays_unclassified_under_its_own_name():
    found = label(tensor("x-1", (4, 2)), "SSM_SCAN")
    assert (found.name, found.kernel_class) == ("ssm_scan", None)
