"""What others wrote cannot become markup, a link, an image or a formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.choices import find_commit
from dashboard.text import for_hover, for_html, for_markdown, shortened


@pytest.mark.parametrize(
    "text", ["![x](http://h/i.png)", "[l](javascript:1)", "**b**", ":red[x]", "$x$", "# h", "`c`", "<b>", "a_b_c"]
)
def test_markdown_is_escaped(text):
    escaped = for_markdown(text)
    assert escaped != text
    assert escaped.replace("\\", "") == text


@given(st.text(max_size=300))
def test_no_text_has_a_live_bracket_or_tag(text):
    for part in for_markdown(text).split("\\")[:1]:
        assert not set("[]()<>*_`$:!#") & set(part)
    assert "<" not in for_hover(text)
    assert "%{" not in for_hover(text)
    assert "<" not in for_html(text)
    assert "\n" not in for_markdown(text)


def test_characters_that_turn_text_round_are_left_out():
    assert shortened("a\u202eb\u0000c\nd", 50) == "abc d"
    assert shortened("x" * 100, 10) == "x" * 9 + "…"


def test_the_start_of_a_hash_finds_one_commit_or_none():
    commits = ["abcd1111", "abcd2222", "ffff0000"]
    assert find_commit(commits, "ffff") == "ffff0000"
    assert find_commit(commits, "abcd") is None
    assert find_commit(commits, "abcd1") == "abcd1111"
    assert find_commit(commits, "f") is None
    assert find_commit(commits, "<script>") is None
