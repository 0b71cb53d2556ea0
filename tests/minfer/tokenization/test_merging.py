"""The merging loop against the definition: look for the best pair again after every merge."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from minfer.tokenization.merging import merge


def by_definition(symbols, ranks):
    symbols = list(symbols)
    while True:
        pairs = [(ranks[a, b], i) for i, (a, b) in enumerate(pairwise(symbols)) if (a, b) in ranks]
        if not pairs:
            return symbols
        _, at = min(pairs)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


PARTS = st.text("ab", min_size=1, max_size=3)


@given(st.text("ab", max_size=24), st.dictionaries(st.tuples(PARTS, PARTS), st.integers(0, 3), max_size=12))
def test_merges_as_defined(text, ranks):
    assert merge(list(text), lambda left, right: ranks.get((left, right))) == by_definition(text, ranks)
