"""Every real trace at hand: no kernel is left without a class."""

from __future__ import annotations

import pytest

from benchmarks.attribution.classes import UNCLASSIFIED, classify_all
from benchmarks.attribution.ingest import open_trace
from tests.shared_files import shared_file

_FILES = (
    "nsys_h100_2gpu_1s.sqlite",
    "nsys_mfu_2gpu_before.sqlite",
    "nsys_mfu_2gpu_after.sqlite",
    "nsys_rtx3080.sqlite",
    "kineto_h100_Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "kineto_inference_vllm_decode_full_graph_execution.json.gz",
    "kineto_hta_diff_control.json.gz",
    "kineto_hta_diff_test.json.gz",
    "nsys_cuda_gpu_kern_sum_dsocr.csv",
    "h200_llamacpp_nt511_ub512.tsv.gz",
)


@pytest.mark.parametrize("name", _FILES)
def test_no_kernel_of_a_real_trace_is_unclassified(name):
    trace = open_trace(str(shared_file("traces", name)))
    if trace.launches is None:
        kernels = tuple(row.name for row in trace.sums)
    else:
        kernels = tuple(trace.names[index] for index in sorted(set(trace.launches.name.tolist())))
    assert len(kernels) >= 2
    unknown = [kernel for kernel, answer in zip(kernels, classify_all(kernels), strict=True) if answer.name == UNCLASSIFIED]
    assert unknown == []
