"""One layer as it ran: the middle one, its last run, in order of start, overlaps and streams kept."""

import json

from benchmarks.attribution.decompose import decompose
from benchmarks.attribution.events import OperationLabel
from benchmarks.attribution.record import RECORD_VERSION
from benchmarks.attribution.record_files import record_from_json
from benchmarks.attribution.timeline import MAX_LAUNCHES

from .builders import make_trace
from .test_record import example

OPERATIONS = (
    OperationLabel("token_embd", "embedding"),
    OperationLabel("attn_q", "q4_K GEMM", layer=0),
    OperationLabel("attn_q", "q4_K GEMM", layer=1),
    OperationLabel("ffn_down", "q6_K GEMM", layer=1),
    OperationLabel("attn_q", "q4_K GEMM", layer=2),
    OperationLabel("output", "logits"),
)


def launch(start, end, operation, name="cublasGemm", stream=7):
    return (start, end, name, 0, stream, -1, operation)


def rows(timeline):
    return [(one.operation, one.kernel_class, one.start_ns, one.ns, one.stream) for one in timeline.launches]


def test_the_middle_layer_with_its_gaps_overlaps_and_unnamed_launches():
    found = decompose(
        make_trace(
            [
                launch(470, 480, 5),
                launch(100, 110, 0, "k_embedding"),
                launch(110, 200, 1),
                launch(205, 215, -1, "void rms_norm_f32<1024>(float const*)"),  # before layer 1, so in its run
                launch(220, 300, 2),
                launch(290, 350, 3, stream=8),  # overlaps: keeps its own length and its stream
                launch(400, 440, 4),
            ],
            operations=OPERATIONS,
        )
    ).timeline
    assert found.layer == 1 and found.left_out == 0
    assert rows(found) == [
        ("rms_norm_f32", "norm", 0, 10, 7),
        ("attn_q", "q4_K GEMM", 15, 80, 7),
        ("ffn_down", "q6_K GEMM", 85, 60, 8),
    ]
    assert found.launches[0].symbol == "rms_norm_f32<1024>"


def test_of_several_ubatches_the_last_run_is_taken():
    first = [launch(1000, 1006, 1), launch(1010, 1016, 2), launch(1020, 1026, 4)]
    second = [launch(2000, 2007, 1), launch(2010, 2017, 2), launch(2020, 2027, 4)]
    found = decompose(make_trace(first + second, operations=OPERATIONS)).timeline
    assert rows(found) == [("attn_q", "q4_K GEMM", 0, 7, 7)]


def test_nothing_is_made_up_where_no_launch_names_a_layer():
    assert decompose(make_trace([launch(1, 2, -1)])).timeline is None
    assert decompose(make_trace([launch(1, 2, 0), launch(3, 4, 5)], operations=OPERATIONS)).timeline is None


def test_a_long_layer_is_cut_and_says_so():
    many = [launch(10 * i + 1, 10 * i + 6, 2) for i in range(MAX_LAUNCHES + 3)]
    found = decompose(make_trace(many, operations=OPERATIONS)).timeline
    assert len(found.launches) == MAX_LAUNCHES and found.left_out == 3


def test_a_record_of_version_1_reads_as_having_no_timeline():
    old = json.loads(example().to_json())
    assert old["version"] == RECORD_VERSION
    old["version"] = 1
    for wall in old["walls"]:
        if wall["decomposition"]:
            del wall["decomposition"]["timeline"]
    read = record_from_json(json.dumps(old), "old")
    assert all(wall.decomposition.timeline is None for wall in read.walls if wall.decomposition)
