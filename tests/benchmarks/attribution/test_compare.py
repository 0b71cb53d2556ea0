"""Two traces per unit of work: never raw sums, and one line where nothing can be compared."""

import pytest

from benchmarks.attribution.attribute import attribute
from benchmarks.attribution.compare import compare, to_json
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.pair import PairError
from benchmarks.attribution.windows import choose
from tests.benchmarks.attribution.ingest import text_builders as text
from tests.benchmarks.attribution.ingest.builders import T0, nsys_sqlite
from tests.shared_files import shared_file

FLASH, NORM = "flash_attn_ext_f16<128>", "rms_norm_f32<256>"


def _answer(path, **options):
    trace = open_trace(path)
    return attribute(trace, str(path), choose(trace), **options)


def _trace(path, rounds, flash_ns, norm_ns, device=0, extra=()):
    """``rounds`` of one attention and two norms, back to back."""
    kernels, clock = [], T0
    for number in range(rounds):
        for name, length in ((FLASH, flash_ns), (NORM, norm_ns), (NORM, norm_ns)):
            kernels.append((clock, clock + length, device, 7, number, name))
            clock += length
    kernels += [(clock, clock + ns, device, 7, 0, name) for name, ns in extra]
    return _answer(nsys_sqlite(path, kernels=kernels, copies=[]))


def test_windows_of_unequal_work_compare_per_launch(tmp_path):
    before = _trace(tmp_path / "a", 34, flash_ns=400, norm_ns=50)
    after = _trace(tmp_path / "b", 30, flash_ns=440, norm_ns=40)
    (found,) = compare(before, after)
    rows = {row.name: row for row in found.classes}
    # The raw sums fell (13,600 to 13,200): per launch attention became 10 % dearer.
    assert (rows["attention"].a_ns, rows["attention"].b_ns) == (13_600, 13_200)
    assert rows["attention"].ratio == pytest.approx(1.1)
    assert rows["attention"].change_ns == pytest.approx(40 * 34)
    assert rows["norm"].ratio == pytest.approx(0.8)
    assert found.ledger.unit == "launch of attention"
    assert found.ledger.net_ns == pytest.approx(500 - 520)
    assert {check.name: check.passed for check in found.checks}["same mix of work"] is True


def test_another_mix_of_work_fails_its_check(tmp_path):
    before = _trace(tmp_path / "a", 10, 400, 50)
    after = _trace(tmp_path / "b", 10, 400, 50, extra=[(NORM, 50)] * 10)
    (found,) = compare(before, after)
    check = next(check for check in found.checks if check.name == "same mix of work")
    assert check.passed is False
    assert "norm 50.0 %" in check.detail


def test_classes_of_one_side_are_named(tmp_path):
    (found,) = compare(_trace(tmp_path / "a", 2, 400, 50), _trace(tmp_path / "b", 2, 400, 50, extra=[("rope_neox<1>", 9)]))
    assert (found.only_a, found.only_b) == ((), ("rope",))
    assert to_json((found,))[0]["only_b"] == ["rope"]


def _sums(path, name="rms_norm_f32<256>"):
    path.write_text(text.csv_text(text.KERN_SUM_HEADER, [("100", "1000", "4", "250", name)]))
    return _answer(path)


def test_two_reports_of_sums_compare_per_launch_without_a_ledger(tmp_path):
    (found,) = compare(_sums(tmp_path / "a"), _sums(tmp_path / "b"))
    assert found.ledger is None
    assert found.classes[0].a_cost == 250


def test_what_cannot_be_compared_is_refused(tmp_path):
    timeline = _trace(tmp_path / "t", 2, 400, 50)
    (tmp_path / "r").write_text(text.llama_bench_text("jsonl"))
    for other, expected in (
        (_answer(tmp_path / "r"), "speeds and no kernels"),
        (_sums(tmp_path / "s"), "sums in which overlap counts twice"),
        (_answer(nsys_sqlite(tmp_path / "u", kernels=[(T0, T0 + 5, 0, 7, 1, "rope_neox<1>")])), "no kernel class in common"),
    ):
        with pytest.raises(PairError) as error:
            compare(timeline, other)
        assert expected in str(error.value)


def test_devices_pair_by_id_or_are_refused(tmp_path):
    both = _answer(nsys_sqlite(tmp_path / "a"))
    assert [(item.a_device, item.b_device) for item in compare(both, both)] == [("0", "0"), ("1", "1")]
    elsewhere = [(T0, T0 + 9, number, 7, 1, NORM) for number in (4, 5)]
    with pytest.raises(PairError, match="none in common"):
        compare(both, _answer(nsys_sqlite(tmp_path / "b", kernels=elsewhere, copies=[])))
    single = _trace(tmp_path / "c", 2, 400, 50, device=3)
    assert compare(_trace(tmp_path / "d", 2, 400, 50), single)[0].b_device == "3"


def test_the_real_before_and_after_pair():
    paths = [shared_file("traces", f"nsys_mfu_2gpu_{side}.sqlite") for side in ("before", "after")]
    found = compare(*(_answer(path) for path in paths))
    assert [item.a_device for item in found] == ["0", "1"]
    flash = [next(row for row in item.classes if row.name == "attention") for item in found]
    assert [sum(getattr(row, side) for row in flash) for side in ("a_units", "b_units")] == [68, 60]
    # The raw sums fell by over a tenth; a launch costs the same to half a percent.
    for row in flash:
        assert row.b_ns < 0.9 * row.a_ns
        assert row.ratio == pytest.approx(1.0, abs=0.02)


def test_the_trace_diff_pair_is_of_two_kinds_of_device():
    paths = [shared_file("traces", f"kineto_hta_diff_{side}.json.gz") for side in ("control", "test")]
    (found,) = compare(*(_answer(path) for path in paths))
    check = next(check for check in found.checks if check.name == "same kind of device")
    assert check.passed is False
    assert check.detail == "NVIDIA A100-PG509-200 against Tesla V100-SXM2-16GB"
