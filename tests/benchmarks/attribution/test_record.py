"""The record survives the disk unchanged, and a damaged one is refused in one line that names the place."""

import json

import pytest

from benchmarks.attribution import record as r
from benchmarks.attribution import record_files


def example() -> r.Record:
    split = r.Split("ffn_down", ns=60, launches=1, layer=3, m=512, n=640, k=2048, quantisation="q6_K", macs=671088640)
    classes = (r.ClassTime("q6_K GEMM", ns=80, launches=2, macs=10**9, samples_ns=(80, 82), splits=(split,)),)
    wall = r.Wall(
        "minfer", "abc", "numpy", nt=512, ubatch=512, gates={"mmq": True, "threads": 2}, samples_ns=(101, 99, 100),
        traced_ns=(103,), quarantined=(r.Quarantined(1, 400, "foreign process"),),
        decomposition=r.Decomposition(
            103, 80, 3, {"host-late": 20}, classes,
            timeline=r.LayerTimeline(3, (r.LayerLaunch("ffn_down", "q6_K GEMM", "mul<14>", 0, 60, 7),)),
        ),
        checks=(r.Check("closure", True, 0.0, 0.0, "ns"),),
    )
    return r.Record(
        commit="0" * 40, commit_time="2026-11-29T00:00:00Z",
        machine=r.Machine("epyc-2core", "AMD EPYC", 2, 24 << 30, "Linux", "3.11"),
        window=r.Window("w1", "2026-11-29T00:00:00Z", "2026-11-29T00:01:00Z", stages_ns={"opening": 7}),
        instrument="spans", instrument_version=1,
        model=r.Model("m", "f" * 64, "gemma3", 268_000_000, {"q4_K": 1}), walls=(wall,),
    )


def test_a_record_read_back_is_equal(tmp_path):
    path = tmp_path / "records" / "0000.jsonl"
    record_files.append_record(path, example())
    record_files.append_record(path, example())
    assert record_files.read_records(path) == [example(), example()]
    assert [entry.name for entry in path.parent.iterdir()] == ["0000.jsonl"]


def test_a_record_of_before_the_stages_is_read_as_having_none():
    data = json.loads(example().to_json())
    data["version"] = 2
    del data["window"]["stages_ns"]
    assert record_files.record_from_json(json.dumps(data), "x.jsonl:1").window.stages_ns == {}


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda d: d.pop("model"), "missing field 'model'"),
        (lambda d: d["walls"][0].update(nt="512"), "walls[0].nt: expected int, seen str"),
        (lambda d: d["walls"][0].update(samples_ns=[1.5]), "samples_ns[0]: expected int, seen float"),
        (lambda d: d.update(colour="red"), "unknown field 'colour'"),
        (lambda d: d.update(version=99), "record version 99"),
        (lambda d: d.update(format="other"), "not a minfer-record"),
    ],
)
def test_a_damaged_record_is_refused_by_place(damage, says):
    data = json.loads(example().to_json())
    damage(data)
    with pytest.raises(record_files.RecordError) as error:
        record_files.record_from_json(json.dumps(data), "x.jsonl:1")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_text_that_is_no_json_is_refused_by_place():
    with pytest.raises(record_files.RecordError, match=r"x\.jsonl:7: not JSON"):
        record_files.record_from_json('{"format"', "x.jsonl:7")


def places(value, path=()):
    """Every place of a JSON tree."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("new", [None, 1, 1.5, True, "text", [], {}, [None], {"a": 1}], ids=repr)
def test_whatever_is_damaged_is_read_or_refused_by_both_readers_alike(new):
    data = json.loads(example().to_json())
    for path in places(data):
        damaged = replaced(data, path, new)
        try:
            slow = record_files._build(r.Record, damaged, "x")
        except record_files.RecordError:
            with pytest.raises(record_files._MismatchError):
                record_files._reader(r.Record)(damaged)
        else:
            assert record_files._reader(r.Record)(damaged) == slow
