"""The static report: whole in one file, harmless text, one clear line where it cannot be written."""

import re
import shutil

import pytest

from benchmarks.__main__ import main


def test_the_report_is_one_file_that_asks_nobody(history, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", "--results", str(history), "--out", str(out)]) == 0
    assert "h200, nt 3325" in capsys.readouterr().out
    text = out.read_text()
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)=["']?https?:""", outside)
    for heading in ("Is it fresh?", "What to do next", "Over commits", "Share of wall", "Checks"):
        assert heading in outside
    assert "<th>Launches</th>" in outside  # a quantity without a unit
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_hostile_text_in_a_record_stays_text(history, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(history, folder)
    for path in (folder / "h200" / "records").glob("*.jsonl"):
        path.write_text(path.read_text().replace('"closure"', '"<img src=x onerror=alert(1)>"'))
    out = tmp_path / "report.html"
    assert main(["report", "--results", str(folder), "--out", str(out)]) == 0
    assert "<img" not in out.read_text()
    assert "&lt;img" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--machine", "nobody"], "there are: h200, epyc-2core"),
        (["--nt", "7"], "there are: 512, 3325"),
        (["--out", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_a_mistake_is_one_line(history, capsys, arguments, says):
    assert main(["report", "--results", str(history), *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_an_empty_folder_is_one_line(tmp_path, capsys):
    assert main(["report", "--results", str(tmp_path), "--out", str(tmp_path / "x.html")]) == 2
    assert "no decomposition record" in capsys.readouterr().err
