"""No two series of a machine share a name, and a name is no longer than that needs."""

import json

import pandas as pd

from dashboard.changes import from_asv
from dashboard.data import Reader
from dashboard.series_names import named
from tests.dashboard.conftest import tables


def table(*rows):
    columns = ["machine", "environment", "benchmark", "parameters", "version"]
    return pd.DataFrame([dict(zip(columns, row, strict=True)) for row in rows], index=range(7, 7 + len(rows)))


def test_what_differs_is_said_and_nothing_else():
    series = table(
        ("m", "checkout-py3.11-modelgemma", "a.f", "128, 'norm'", "1"),
        ("m", "checkout-py3.11-modelSmolLM2", "a.f", "128, 'norm'", "1"),
        ("m", "checkout-py3.11-modelSmolLM2", "a.f", "512, 'norm'", "1"),
        ("n", "checkout-py3.11-modelgemma", "a.f", "128, 'norm'", "1"),
        ("n", "checkout-py3.11-modelgemma", "a.g", "", "1"),
        ("n", "checkout-py3.11-modelgemma", "a.g", "", "2"),
    )
    names = named(series)
    assert list(names.index) == list(series.index)
    assert list(names) == [
        "a.f(128, norm) · gemma",
        "a.f(128, norm) · SmolLM2",
        "a.f(512, norm)",
        "a.f(128, norm)",
        "a.g · version 1",
        "a.g · version 2",
    ]


def write(folder, environment: str, values: list[float]) -> None:
    (folder / "m").mkdir(parents=True, exist_ok=True)
    for place, value in enumerate(values):
        commit = f"{place + 1}" * 40
        found = {
            "commit_hash": commit,
            "env_name": environment,
            "date": 1_700_000_000_000 + 86_400_000 * place,
            "version": 2,
        }
        found |= {"result_columns": ["result", "params", "version"], "results": {"a.f": [[value], [], "1"]}}
        (folder / "m" / f"{commit[:8]}-{environment}.json").write_text(json.dumps(found))


def test_series_of_two_environments_are_both_on_the_screen_and_both_examined(open_screen, tmp_path):
    folder = tmp_path / "results"
    write(folder, "checkout-py3.11-modelone", [1.0, 2.0])
    write(folder, "checkout-py3.11-modeltwo", [10.0, 20.0])
    shown = tables(open_screen("explore", folder))[0]
    assert dict(zip(shown["name"], shown["newest"], strict=True)) == {"a.f · one": 2.0, "a.f · two": 20.0}
    for name in ("one", "two"):
        test = open_screen("explore", folder, series=f"m/a.f · {name}")
        assert test.selectbox(key="choice-series").value == f"m/a.f · {name}"
    found = Reader(folder).current()
    histories, _ = from_asv(found, found.series, {})
    assert {item.name: list(item.values) for item in histories} == {"a.f · one": [1.0, 2.0], "a.f · two": [10.0, 20.0]}
