"""What is stored of an accepted regression reads back, and a bad line is named."""

import pytest

from benchmarks.attribution.acceptance import Acceptance, read_acceptances
from benchmarks.attribution.errors import UserFacingError

ONE = Acceptance("c" * 40, "the prepass pays for itself", "b" * 40, "h" * 40, ("prefill@64/norm",), (1.4,))


def test_what_is_stored_reads_back(tmp_path):
    path = tmp_path / "accepted.jsonl"
    assert read_acceptances(path) == []
    path.write_text(ONE.to_json() + "\n\n" + ONE.to_json() + "\n")
    assert read_acceptances(path) == [ONE, ONE]


@pytest.mark.parametrize("line", ["{", "3", '{"format":"other"}', ONE.to_json().replace('"reason"', '"why"')])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "accepted.jsonl"
    path.write_text(ONE.to_json() + "\n" + line + "\n")
    with pytest.raises(UserFacingError, match=r"accepted\.jsonl:2: not an acceptance"):
        read_acceptances(path)
