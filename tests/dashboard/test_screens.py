"""Every screen opens on a whole, an empty and a damaged folder, and says what the records say."""

import json
import shutil

import pytest

from benchmarks.attribution.record import LayerLaunch, LayerTimeline
from benchmarks.attribution.statistics.calibration import Calibration, Trial
from dashboard.charts.timeline import launch_table, timeline_sentence
from tests.dashboard.conftest import charts, tables

SCREENS = ("overview", "commit", "compare", "queue", "kernels", "predictions", "changes", "trust")


def words(test) -> str:
    kinds = (
        test.markdown,
        test.caption,
        test.info,
        test.warning,
        test.error,
        test.title,
        test.subheader,
        test.success,
        test.code,
    )
    return "\n".join(str(item.value) for kind in kinds for item in kind)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_opens_on_a_missing_folder(open_screen, tmp_path, screen):
    test = open_screen(screen, tmp_path / "nothing")
    assert "does not exist" in test.info[-1].value


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_opens_and_draws(open_screen, history, screen):
    test = open_screen(screen, history)
    assert charts(test) or tables(test) or test.success
    assert not test.error


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_opens_on_one_record_without_a_decomposition(open_screen, history, tmp_path, screen):
    folder = tmp_path / "results"
    path = next((history / "h200" / "records").glob("*.jsonl"))
    record = json.loads(path.read_text())
    record["walls"] = [record["walls"][0] | {"decomposition": None, "why_not_decomposed": "no tracer", "traced_ns": []}]
    (folder / "h200" / "records").mkdir(parents=True)
    (folder / "h200" / "records" / path.name).write_text(json.dumps(record) + "\n")
    test = open_screen(screen, folder)
    assert words(test)


@pytest.mark.parametrize("screen", SCREENS)
def test_hostile_text_is_shown_as_text(open_screen, history, tmp_path, screen):
    hostile = "<script>alert(1)</script> ![x](http://192.0.2.1/x.png) **b** $y$ :red[z] [l](javascript:alert(1))"
    folder = tmp_path / "results"
    shutil.copytree(history, folder)
    for path in (folder / "h200" / "records").glob("*.jsonl"):
        record = json.loads(path.read_text())
        record["notes"] = [hostile]
        record["model"]["name"] = hostile
        for wall in record["walls"]:
            wall["engine_version"] = hostile
            wall["checks"].append({"name": hostile, "passed": False, "detail": hostile})
            wall["decomposition"]["classes"][0]["name"] = hostile
            wall["decomposition"]["classes"][1]["symbols"] = [hostile]
            wall["decomposition"]["timeline"]["launches"][0] |= {"operation": hostile, "symbol": hostile}
            wall["gates"] |= {hostile: True}
        path.write_text(json.dumps(record) + "\n")
    commits = [json.loads(line) for line in (folder / "commits.jsonl").read_text().splitlines()]
    lines = [json.dumps(commit | {"subject": hostile, "body": hostile}) for commit in commits]
    (folder / "commits.jsonl").write_text("\n".join(lines) + "\n")
    asked = (
        {"by": "one layer over time"} if screen == "commit" else {"to-machine": "epyc-2core"} if screen == "compare" else {}
    )
    test = open_screen(screen, folder, **asked)
    kinds = (test.markdown, test.caption, test.info, test.warning, test.error, test.success, test.subheader)
    shown = "\n".join(str(item.value) for kind in kinds for item in kind)
    for live in ("![x](", "[l](", "**b**", ":red[z]", "$y$"):
        assert live not in shown
    for traces in charts(test).values():
        text = json.dumps(traces)
        assert "<script>" not in text


def test_the_commit_screen_follows_its_url(open_screen, history):
    commits = [json.loads(line)["commit"] for line in (history / "commits.jsonl").read_text().splitlines()]
    test = open_screen("commit", history, commit=commits[3][:12], nt="512")
    assert commits[3] in words(test)
    table = next(frame for frame in tables(test) if "class" in frame)
    record = json.loads((history / "h200" / "records" / f"{commits[3]}.jsonl").read_text())
    wall = next(w for w in record["walls"] if w["engine"] == "minfer" and w["nt"] == 512)
    taken = wall["decomposition"]
    assert table["class_ms"].sum() == pytest.approx(taken["wall_ns"] / 1e6)
    assert table["share_of_wall"].sum() == pytest.approx(100.0)
    q6 = next(item for item in taken["classes"] if item["name"] == "q6_K GEMM")
    row = table[table["class"] == "q6_K GEMM"].iloc[0]
    middle = sorted(q6["samples_ns"])[1]
    assert row["cost"] == pytest.approx(middle / 1e3 / (q6["macs"] / 1e9))


def test_older_and_newer_step_through_the_measured_commits(open_screen, history):
    commits = [json.loads(line)["commit"] for line in (history / "commits.jsonl").read_text().splitlines()]
    test = open_screen("commit", history)
    assert commits[-1] in words(test)
    test.button(key="commit-older").click().run()
    assert commits[-2] in words(test)
    assert test.query_params["commit"] == commits[-2][:12]
    test.button(key="commit-newer").click().run()
    assert commits[-1] in words(test)


def test_the_queue_opens_its_arithmetic_out(open_screen, history):
    test = open_screen("queue", history)
    chain = test.code[0].value
    assert "recoverable:" in chain
    assert "GMAC" in chain
    table = next(frame for frame in tables(test) if "recoverable_ms" in frame)
    assert list(table["recoverable_ms"]) == sorted(table["recoverable_ms"], reverse=True)
    assert {"peer", "ceiling", "none left"} <= set(table["target"])


def test_published_figures_are_labelled_as_the_publications(open_screen, history):
    test = open_screen("published", history)
    assert "publication's" in test.warning[0].value
    assert any("1,521" in item.value or "1,518" in item.value for item in test.metric)


def test_a_folder_with_only_calibrations_shows_them_and_says_what_is_missing(open_screen, tmp_path):
    trials = [Trial("identical", 0.0, True, (), 8, 3.5)] * 19 + [Trial("identical", 0.0, False, ("wall",), 8, 3.5)]
    trials += [Trial("attention", 0.05, False, ("wall/attention",), 10, 4.0)] * 9 + [
        Trial("attention", 0.05, True, (), 10, 4.0)
    ]
    one = Calibration(
        "a" * 40,
        "2026-11-29T00:00:00Z",
        "lab",
        "toy",
        "operation counts",
        ("wall",),
        0.03,
        0.01,
        0.1,
        8,
        24,
        (0.5,),
        tuple(trials),
    )
    path = tmp_path / "results" / "lab" / "calibration" / "toy.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(one.to_json() + "\n")
    test = open_screen("trust", tmp_path / "results")
    table = tables(test)[0]
    assert list(table["rate (%)"]) == pytest.approx([5.0, 90.0])
    said = words(test).replace("\\", "")
    assert "1 of 20 identical commits were called SLOWER" in said
    assert "9 of 10 slowdowns of 5 % were found" in said
    assert "calibrations of the CI gate on lab" in test.info[0].value
    assert "gate-lab" in charts(test)


def test_a_record_that_merged_its_layers_shows_an_average_launch_of_each_operation(open_screen, history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(history, folder)
    for path in (folder / "h200" / "records").glob("*.jsonl"):
        record = json.loads(path.read_text())
        for wall in record["walls"]:
            wall["decomposition"]["timeline"] = None
            for item in wall["decomposition"]["classes"]:
                merged = {}
                for split in item["splits"]:
                    same = merged.setdefault(split["operation"], split | {"ns": 0, "launches": 0, "layer": None})
                    same["ns"] += split["ns"]
                    same["launches"] += split["launches"]
                item["splits"] = list(merged.values())
        path.write_text(json.dumps(record) + "\n")
    test = open_screen("commit", folder, by="one layer over time")
    drawn = {trace["y"][0]: trace["x"][0] for trace in charts(test)["layer"]}
    splits = [split for item in record["walls"][0]["decomposition"]["classes"] for split in item["splits"]]
    assert set(drawn) == {split["operation"] for split in splits if split["launches"] > 1}
    assert any("average launch" in item.value for item in test.caption)


def test_a_layers_launches_stand_at_their_times(open_screen, history):
    commit = json.loads((history / "commits.jsonl").read_text().splitlines()[-1])["commit"]
    record = json.loads((history / "h200" / "records" / f"{commit}.jsonl").read_text())
    timeline = next(w for w in record["walls"] if w["nt"] == 512)["decomposition"]["timeline"]
    test = open_screen("commit", history, nt="512", by="one layer over time")
    drawn = sorted(
        (base, length) for trace in charts(test)["layer"] for base, length in zip(trace["base"], trace["x"], strict=True)
    )
    assert drawn == sorted((item["start_ns"] / 1e3, item["ns"] / 1e3) for item in timeline["launches"])
    table = next(frame for frame in tables(test) if "gap before (µs)" in frame)
    assert list(table["start (µs)"]) == sorted(table["start (µs)"])
    assert "Layer 1 as it ran" in words(test).replace("\\", "")
    assert any("stream 7" in name for trace in charts(test)["layer"] for name in trace["y"])


def test_gaps_of_a_layer_are_where_nothing_ran():
    launches = (
        LayerLaunch("a", "norm", "norm<1>", 0, 1000, 0),
        LayerLaunch("b", "rope", "rope<1>", 500, 1500, 7),  # begins beside a
        LayerLaunch("c", "norm", "norm<1>", 5000, 1000, 0),  # 3 us after b
    )
    timeline = LayerTimeline(4, launches, left_out=2)
    assert list(launch_table(timeline)["gap before (µs)"]) == [0.0, -0.5, 3.0]
    said = timeline_sentence(timeline)
    assert "3 launches in 6 µs" in said
    assert "3 µs of them (50 %)" in said
    assert "2 more launches" in said


def test_a_check_is_one_line_of_plain_text(open_screen, history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(history, folder)
    commit = json.loads((folder / "commits.jsonl").read_text().splitlines()[-1])["commit"]
    path = folder / "h200" / "records" / f"{commit}.jsonl"
    record = json.loads(path.read_text())
    for wall in record["walls"]:
        wall["checks"] = [
            {"name": "a | b\n| c", "passed": False, "value": 0.0312345, "limit": 0.03, "unit": "x", "detail": "d"}
        ]
    path.write_text(json.dumps(record) + "\n")
    table = next(frame for frame in tables(open_screen("commit", folder)) if "check" in frame)
    assert table.iloc[0].to_list() == ["a | b | c", "FAILED", 0.0312345, 0.03, "x", "d"]


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_opens_on_walls_of_a_peer_alone(open_screen, history, tmp_path, screen):
    folder = tmp_path / "results"
    (folder / "h200" / "records").mkdir(parents=True)
    for path in sorted((history / "h200" / "records").glob("*.jsonl"))[:3]:
        record = json.loads(path.read_text())
        record["walls"] = [wall for wall in record["walls"] if wall["engine"] != "minfer"]
        (folder / "h200" / "records" / path.name).write_text(json.dumps(record) + "\n")
    assert words(open_screen(screen, folder))
