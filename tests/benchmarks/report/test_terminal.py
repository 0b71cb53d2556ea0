"""What a terminal shows: bars that add up, no bar for nothing, plain signs where it cannot show blocks."""

import pytest

from benchmarks.attribution.attribute import attribute
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.windows import choose
from benchmarks.report import html, markdown, portrait, terminal
from tests.benchmarks.attribution.ingest.builders import KERNELS, T0, nsys_sqlite


@pytest.fixture
def answer(tmp_path):
    trace = open_trace(nsys_sqlite(tmp_path / "t", kernels=[*KERNELS, (T0 + 2000, T0 + 2900, 0, 7, 9, "mine<a, b>")]))
    return attribute(trace, "t", choose(trace), device=0)


@pytest.mark.parametrize(("share", "cells"), [(0.0, ""), (1.0, "█" * 24), (0.5, "█" * 12), (1e-6, "▏"), (7.0, "█" * 24)])
def test_bars(share, cells):
    assert terminal.bar(share) == cells.ljust(24)


@pytest.mark.parametrize(("share", "cells"), [(0.0, 0), (1.0, 24), (0.5, 12), (1e-6, 1)])
def test_plain_bars(share, cells):
    assert terminal.bar(share, unicode_bars=False) == ("#" * cells).ljust(24)


def test_rows_add_up_to_the_wall(answer):
    (device,) = answer.devices
    rows = portrait.rows(device)
    assert sum(row.ns for row in rows) == device.decomposition.wall_ns
    assert sum(row.share for row in rows) == pytest.approx(1.0)
    assert sum(row.share_of_busy for row in rows if row.kind == "class") == pytest.approx(1.0)


def test_a_plain_terminal_gets_plain_signs(answer):
    text = terminal.render([answer], unicode_bars=False, width=100)
    assert "#" in text
    assert "█" not in text
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100


def test_every_shape_names_the_failed_check_and_the_unknown_kernel(answer):
    for text in (terminal.render([answer], width=200), markdown.render([answer]), html.render([answer])):
        assert "FAILED" in text
        assert "mine" in text


def test_times_keep_their_digits():
    assert portrait.milliseconds(0) == "0.000 ms"
    assert portrait.milliseconds(1_234_567_890) == "1,234.568 ms"
    assert portrait.milliseconds(1_632) == "1.632 us"
