"""Cuts and draws against their definitions; the same seed gives the same tokens."""

import numpy as np
import pytest

from minfer.errors import MinferError
from minfer.sampling import GREEDY, Sampler, Sampling, candidates

LOGITS = np.log(np.array([0.1, 0.4, 0.05, 0.25, 0.2], np.float32))
ALL = Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def with_options(**changes):
    return Sampling(**{"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, **changes})


def test_greedy_takes_the_most_likely_and_of_equals_the_lowest_id():
    assert Sampler(GREEDY).choose(LOGITS) == 1
    assert Sampler(GREEDY).choose(np.array([0, 2, 2], np.float32)) == 1


@pytest.mark.parametrize(
    ("options", "tokens", "probabilities"),
    [
        (ALL, [1, 3, 4, 0, 2], [0.4, 0.25, 0.2, 0.1, 0.05]),
        (with_options(top_k=2), [1, 3], [0.4 / 0.65, 0.25 / 0.65]),
        (with_options(top_p=0.5), [1, 3], [0.4 / 0.65, 0.25 / 0.65]),
        (with_options(top_p=0.0), [1], [1.0]),
        (with_options(min_p=0.49), [1, 3, 4], [0.4 / 0.85, 0.25 / 0.85, 0.2 / 0.85]),
        (with_options(top_k=2, temperature=0.5), [1, 3], [0.16 / 0.2225, 0.0625 / 0.2225]),
    ],
)
def test_cuts(options, tokens, probabilities):
    kept, chances = candidates(LOGITS, options)
    assert kept.tolist() == tokens
    np.testing.assert_allclose(chances, probabilities, rtol=1e-6)


def test_top_k_keeps_k_even_among_equals():
    assert candidates(np.zeros(9, np.float32), with_options(top_k=3))[0].tolist() == [0, 1, 2]


def test_draws_follow_the_distribution_and_repeat_with_the_seed():
    sampler = Sampler(with_options(seed=7))
    drawn = [sampler.choose(LOGITS) for _ in range(4000)]
    again = Sampler(with_options(seed=7))
    assert drawn == [again.choose(LOGITS) for _ in range(4000)]
    assert drawn != [Sampler(with_options(seed=8)).choose(LOGITS) for _ in range(4000)]
    shares = np.bincount(drawn, minlength=5) / 4000
    np.testing.assert_allclose(shares, np.exp(LOGITS), atol=0.03)


def test_a_drawn_seed_can_be_told():
    first = Sampler(with_options())
    assert Sampler(with_options(seed=first.seed)).choose(LOGITS) == first.choose(LOGITS)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("options", [GREEDY, ALL])
def test_logits_that_are_no_numbers_are_refused(bad, options):
    with pytest.raises(MinferError, match=r"the logits hold .* at token 2, expected finite"):
        Sampler(options).choose(np.array([0, 1, bad], np.float32))


@pytest.mark.parametrize(
    "changes",
    [{"temperature": -1}, {"temperature": float("nan")}, {"top_k": -1}, {"top_p": 1.5}, {"min_p": -0.1}, {"seed": -1}],
)
def test_options_out_of_range_are_named(changes):
    with pytest.raises(MinferError, match=f"{next(iter(changes)).replace('_', '-')} is .*, expected"):
        with_options(**changes)
