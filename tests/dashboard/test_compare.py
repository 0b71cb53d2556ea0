"""Compare: what is a pair gets its ratio, what is not says why, on made-up and on real results."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.attribution.beside import beside
from benchmarks.attribution.record_files import read_records
from benchmarks.attribution.spread import Figure, Interval
from dashboard.compare import history_answer, side_names
from dashboard.portrait import best_of_each, short_labels
from tests.dashboard.conftest import charts, tables
from tests.dashboard.test_screens import words

REAL = Path(__file__).resolve().parents[2] / "results"
COMMIT = "4180a8a11fb482b294c73a39a6e523066596c579"  # measured on the H200 beside llama.cpp, Transformers and other gates


def test_other_nt_gives_no_ratio_and_no_milliseconds_but_costs(open_screen, history):
    test = open_screen("compare", history, **{"from-nt": "512", "to-nt": "3325"})
    assert "Not a pair" in test.warning[0].value
    assert "nt 512 against 3325" in test.warning[0].value
    assert {"costs", "sides"} <= set(charts(test))
    assert "waterfall" not in charts(test)
    columns = [column for frame in tables(test) for column in frame]
    assert any("µs/GMAC" in column for column in columns)
    assert not any("ratio" in column or "change" in column for column in columns)


def test_engines_of_two_windows_have_no_ratio(open_screen, history):
    test = open_screen("compare", history, **{"from-wall": "llama.cpp cuda, ubatch 2048"})
    assert "Two windows" in test.warning[0].value.replace("\\", "")
    assert not any("ratio" in column for frame in tables(test) for column in frame)
    assert "window" in words(test)


def test_the_ledger_closes_on_the_screen(open_screen, history):
    test = open_screen("compare", history)
    ledger = next(frame for frame in tables(test) if "change (ms)" in frame)
    bars = charts(test)["waterfall"][0]
    assert ledger["change (ms)"].sum() == pytest.approx(bars["x"][-1] - bars["x"][0])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("llama.cpp cuda, ubatch 2048", "minfer takes 0.24"),
        ("minfer cuda, ubatch 8192 (bt=True,fa=True,graphs=True,mmq=True)", "times the time of minfer (bt=True"),
        ("transformers cuda, ubatch 3325", "minfer takes 0.8"),
    ],
)
def test_engines_of_one_real_window_are_a_pair(open_screen, other, said):
    test = open_screen("compare", REAL, **{"from": COMMIT, "to": COMMIT, "to-wall": other, "nt": "3325", "machine": "h200"})
    assert said in test.info[0].value.replace("\\", "")
    assert {"waterfall", "costs", "sides"} <= set(charts(test))
    ledger = next(frame for frame in tables(test) if "what" in frame)
    bars = charts(test)["waterfall"][0]
    assert ledger["change (ms)"].sum() == pytest.approx(bars["x"][-1] - bars["x"][0])
    assert not {"won", "lost", "hidden tax"} & set(ledger["what"])
    pairs = next(frame for frame in tables(test) if "ratio @3325" in frame)
    assert pairs["interval"].str.contains(" to ").any()
    assert ("16" in words(test) and "bit weights" in words(test)) == other.startswith("transformers")


def test_two_real_machines_are_set_side_by_side_without_verdict(open_screen):
    test = open_screen("compare", REAL, **{"machine": "h200", "to-machine": "epyc-2core", "to-nt": "512"})
    said = test.warning[0].value.replace("\\", "")
    assert "machine h200 against epyc-2core" in said
    assert "no regression" in said
    assert not test.error
    speeds = next(frame for frame in tables(test) if "tokens_per_second" in frame)
    assert list(speeds["side"]) == ["h200 minfer @3325", "epyc-2core minfer @512"]
    assert speeds["tokens_per_second"].iloc[0] > 10 * speeds["tokens_per_second"].iloc[1]
    assert not any("change" in column for frame in tables(test) for column in frame)


def test_names_of_sides_hold_what_differs_and_no_more():
    record = read_records(REAL / "h200" / "records" / f"{COMMIT}.jsonl")[-1]
    ours, gated, peer = record.walls[0], record.walls[1], record.walls[2]

    def names(a, b):
        return side_names(beside(record, a, record, b), (record, a), (record, b))

    assert names(ours, peer) == ("minfer", "llama.cpp")
    assert names(ours, gated) == ("minfer (without bt, mmq)", "minfer (bt=True, mmq=True)")
    assert names(gated, ours) == ("minfer (bt=True, mmq=True)", "minfer (without bt, mmq)")
    assert names(ours, ours) == ("minfer, first", "minfer, second")


def test_the_answer_is_a_plain_sentence():
    def said(net, low, high):
        book = SimpleNamespace(net=Figure(net * 1e6, None if low is None else Interval(low * 1e6, high * 1e6, 0.95)))
        return history_answer(book, ("old", "new"))

    assert said(12, 10, 14) == ("Faster: new takes 12 ms less (10 to 14) than old.", "good")
    assert said(-12, -14, -10) == ("Slower: new takes 12 ms more (10 to 14) than old.", "bad")
    sentence, state = said(0.8, -2.6, 2.8)
    assert state == "unsure"
    assert sentence.endswith("new takes 0.8 ms less than old, and may take from 2.6 ms more to 2.8 ms less.")
    assert said(-3, None, None)[0] == "Slower: new takes 3 ms more than old."


def test_of_each_engine_with_the_same_gates_the_fastest_ubatch_is_shown():
    record = read_records(REAL / "h200" / "records" / f"{COMMIT}.jsonl")[-1]
    walls = [wall for wall in record.walls if wall.nt == 3325 and wall.engine in ("llama.cpp", "minfer")]
    best = best_of_each(walls)
    assert [(wall.engine, wall.ubatch) for wall in best] == [("minfer", 8192), ("minfer", 8192), ("llama.cpp", 2048)]
    assert short_labels(best) == [
        "minfer, ubatch 8192 (fa, graphs)", "minfer, ubatch 8192 (bt, fa, graphs, mmq)", "llama.cpp, ubatch 2048",
    ]  # fmt: skip
