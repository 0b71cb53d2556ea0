"""Perplexity and divergence by hand on logits of two and three tokens."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.attribution.agreement import Agreement, AgreementError, combined, common_prefix, compare_logits

TOKENS = [0, 1, 0]


def logits(*rows):
    return np.log(np.array(rows, np.float32)) + 5


EVEN = logits([0.5, 0.5], [0.5, 0.5], [0.5, 0.5])
SURE = logits([0.25, 0.75], [0.8, 0.2], [0.5, 0.5])


def test_the_same_logits_agree_wholly_whatever_is_added_to_a_row():
    seen = compare_logits(TOKENS, SURE, SURE + 3)
    assert seen.perplexity_difference == pytest.approx(0, abs=1e-7)
    assert seen.mean_kl == pytest.approx(0, abs=1e-7)
    assert seen.same_top == 1.0
    assert seen.within_bars


def test_by_hand():
    seen = compare_logits(TOKENS, EVEN, SURE)
    assert seen.perplexity == pytest.approx(2.0)
    assert seen.peer_perplexity == pytest.approx((1 / (0.75 * 0.8)) ** 0.5)
    first = 0.25 * np.log(0.25 / 0.5) + 0.75 * np.log(0.75 / 0.5)
    second = 0.8 * np.log(0.8 / 0.5) + 0.2 * np.log(0.2 / 0.5)
    assert seen.mean_kl == pytest.approx((first + second) / 3, rel=1e-5)
    assert seen.largest_kl == pytest.approx(max(first, second), rel=1e-5)
    assert seen.same_top == pytest.approx(2 / 3)
    apart = np.array([np.log(0.75 / 0.5), np.log(0.8 / 0.5)])
    assert seen.perplexity_error == pytest.approx(apart.std(ddof=1) / 2**0.5, rel=1e-5)
    assert not seen.within_bars


def test_stretches_are_one_text():
    rng = np.random.default_rng(0)
    ours, peer = rng.standard_normal((2, 60, 9)).astype(np.float32)
    ids = [int(token) for token in rng.integers(0, 9, 60)]
    parts = [compare_logits(ids[at : at + 20], ours[at : at + 20], peer[at : at + 20]) for at in (0, 20, 40)]
    whole = combined(parts)
    losses = []
    for logits in (ours, peer):
        probabilities = np.exp(logits.astype(np.float64))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        kept = [at for at in range(59) if at % 20 != 19]
        losses.append(np.array([-np.log(probabilities[at, ids[at + 1]]) for at in kept]))
    assert whole.tokens == 60
    assert whole.perplexity == pytest.approx(np.exp(losses[0].mean()))
    assert whole.peer_perplexity == pytest.approx(np.exp(losses[1].mean()))
    assert whole.perplexity_error == pytest.approx((losses[0] - losses[1]).std(ddof=1) / 57**0.5)
    assert whole.mean_kl == pytest.approx(np.mean([part.mean_kl for part in parts]))
    assert whole.largest_kl == max(part.largest_kl for part in parts)
    with pytest.raises(AgreementError, match="expected at least one"):
        combined([])


def test_two_standard_errors_decide():
    near = Agreement(512, 99.5, 100.0, 0.0048, 0.005, 0.1, 0.9)
    assert not near.decided
    assert near.tokens_to_decide == 1888
    assert replace(near, perplexity=99.99, perplexity_error=0.002).decided
    assert replace(near, perplexity=98.0).decided


def test_a_number_that_is_none_is_not_within_the_bars():
    broken = SURE.copy()
    broken[1, 0] = np.nan
    assert not compare_logits(TOKENS, broken, SURE).within_bars


@pytest.mark.parametrize(
    ("tokens", "ours", "peer"),
    [(TOKENS, EVEN, EVEN[:, :1]), (TOKENS, EVEN[:2], EVEN[:2]), ([0], EVEN[:1], EVEN[:1])],
)
def test_what_cannot_be_compared_is_refused(tokens, ours, peer):
    with pytest.raises(AgreementError):
        compare_logits(tokens, ours, peer)


@pytest.mark.parametrize(
    ("one", "other", "length"), [([1, 2, 3], [1, 2, 4], 2), ([1], [1, 2], 1), ([], [], 0), ([2], [1], 0)]
)
def test_common_prefix(one, other, length):
    assert common_prefix(one, other) == length
