"""Steps are found, placed and sized; quiet noise of any form stays quiet. The full figures: docs/detectors/."""

import numpy as np
import pytest

from benchmarks.attribution.statistics import change_points as c
from benchmarks.attribution.statistics.alarms import FEWEST_POINTS, find_alarms, neighbour_correlation
from tests.shared_files import shared_file
from tools.study_noise import quiet_stretches

# 20 timings of one commit after the other, 2 % slower from the 13th on.
LITERAL = [
    10.02, 9.98, 10.01, 9.97, 10.03, 10.00, 9.99, 10.04, 9.96, 10.01, 10.02, 9.98,
    10.21, 10.19, 10.22, 10.18, 10.20, 10.23, 10.21, 10.19,
]  # fmt: skip


def quiet(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    if kind == "gaussian":
        return rng.standard_normal(shape)
    if kind == "t3":
        return rng.standard_t(3, shape) / np.sqrt(3)
    return (rng.random(shape) < 0.5) * 2.0 - 1 + 0.05 * rng.standard_normal(shape)


def autoregressive(rho: float, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    noise = rng.standard_normal((shape[0], shape[1] + 40))
    for at in range(1, noise.shape[1]):
        noise[:, at] += rho * noise[:, at - 1]
    return noise[:, 40:]


def test_a_literal_step_is_found_placed_and_sized():
    (change,) = c.find_changes(LITERAL)
    assert change.index == 12 and 11 <= change.earliest <= 12 <= change.latest <= 13
    assert (change.before, change.after) == (pytest.approx(10.005), pytest.approx(10.205))
    assert change.shift.ratio == pytest.approx(1.02, abs=0.001)
    assert change.shift.low < 1.02 < change.shift.high
    assert change.seen_at <= 17


@pytest.mark.parametrize("kind", ["gaussian", "t3", "two levels"])
@pytest.mark.parametrize("history", [0, 80])
def test_quiet_noise_alarms_in_at_most_one_series_of_a_hundred(kind, history):
    values = quiet(kind, np.random.default_rng(11), (1500, history + 120))
    alarms, _ = find_alarms(values, first_look=history)
    assert len({alarm.row for alarm in alarms}) <= 15


@pytest.mark.parametrize("kind", ["gaussian", "t3", "two levels"])
@pytest.mark.parametrize("sign", [3.0, -3.0])
def test_a_step_of_three_sigma_is_found_within_five_points_in_nine_of_ten(kind, sign):
    values = quiet(kind, np.random.default_rng(12), (400, 85))
    values[:, 80:] += sign
    alarms, _ = find_alarms(values)
    assert len({alarm.row for alarm in alarms if alarm.seen_at >= 80}) >= 360


def test_correlated_noise_alarms_in_at_most_one_series_of_twenty():
    values = autoregressive(0.5, np.random.default_rng(13), (1000, 120))
    found = c.find_changes_in_many(list(values))
    assert sum(bool(changes) for changes in found) <= 50
    blocks = c.find_changes_in_many([c.aggregate(row) for row in values])
    assert sum(bool(changes) for changes in blocks) <= 10


def test_correlated_points_still_show_a_lasting_step():
    values = 100 + autoregressive(0.5, np.random.default_rng(14), (50, 160))
    values[:, 80:] += 6
    found = c.find_changes_in_many(list(values))
    hits = [any(abs(change.index - 80) <= 6 for change in changes) for changes in found]
    assert np.mean(hits) >= 0.9


def test_what_was_seen_once_is_seen_in_the_longer_series_too():
    rng = np.random.default_rng(15)
    values = rng.standard_normal((40, 200))
    values[:, 90:] += 2
    for length in (110, 150, 200):
        alarms, _ = find_alarms(values[:, :length])
        shorter, _ = find_alarms(values[:, : length - 10])
        assert {a for a in alarms if a.seen_at < length - 10} == set(shorter)


def test_padding_on_the_left_changes_nothing():
    rng = np.random.default_rng(16)
    series = [rng.standard_normal(length) + np.where(np.arange(length) >= 60, 3, 0) for length in (70, 90, 120)]
    together = c.find_changes_in_many(series)
    # Ties aside, a series alone and among longer ones gives one answer.
    assert together == [c.find_changes(values) for values in series]
    assert c.find_changes_in_many(series * 3, workers=2) == together * 3


def test_two_changes_of_either_direction():
    values = np.random.default_rng(17).standard_normal(300) + 100
    values[100:200] += 5
    places = [change.index for change in c.find_changes(values)]
    assert len(places) == 2 and abs(places[0] - 100) <= 1 and abs(places[1] - 200) <= 1


def test_real_histories_without_a_visible_step_seldom_alarm():
    stretches, read = quiet_stretches(shared_file("histories", "real_timings.csv.gz"))
    assert read == 160 and len(stretches) > 90
    values = np.array([stretch.values for stretch in stretches])
    alarms, _ = find_alarms(values, first_look=60)
    assert len({alarm.row for alarm in alarms}) <= 0.1 * len(stretches)
    values[:, 100:] *= 1.05
    found = {alarm.row for alarm in find_alarms(values, first_look=60)[0] if abs(alarm.index - 100) <= 5}
    assert len(found) >= 0.85 * len(stretches)


def test_a_small_step_far_beyond_one_window_is_found_in_blocks():
    values = np.random.default_rng(18).standard_normal(1600) + 100
    values[800:] += 0.5
    assert any(abs(change.index - 800) <= 60 for change in c.find_changes(values))


def test_one_wild_point_is_no_change():
    values = np.array(LITERAL[:12] * 6)
    values[40] = 1000.0
    assert c.find_changes(values) == ()


def test_constant_and_tied_series():
    assert c.find_changes(np.full(200, 7.0)) == ()
    (change,) = c.find_changes([1.0] * 20 + [2.0] * 8)
    assert (change.index, change.before, change.after) == (20, 1.0, 2.0)
    ties = np.random.default_rng(19).integers(10, 13, (500, 120)).astype(float)
    assert sum(bool(changes) for changes in c.find_changes_in_many(list(ties))) <= 8


def test_too_short_series_have_no_change():
    assert c.find_changes([]) == ()
    assert c.find_changes([1.0] * (FEWEST_POINTS - 1)) == ()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_refused(bad):
    with pytest.raises(c.SeriesError, match=r"series 0: point 2 is (nan|inf); leave out points"):
        c.find_changes([1.0, 2.0, bad, 3.0])


def test_a_series_without_positive_values_has_no_ratio():
    (change,) = c.find_changes([value - 10.1 for value in LITERAL])
    assert change.shift == c.Shift(None, None, None)
    assert change.after - change.before == pytest.approx(0.2)


def test_windows_are_compared_by_their_medians():
    rng = np.random.default_rng(20)
    # 12 windows of 10 points: each window is off by about 3 %, its points by 0.2 %. No window-wide change.
    offsets = np.repeat(rng.normal(100, 3, 12), 10)
    values = offsets + rng.normal(0, 0.2, 120)
    names = [f"w{number // 10}" for number in range(120)]
    assert c.find_changes(values)  # point by point, every window looks like a change
    assert c.find_changes(values, windows=names) == ()


def test_a_change_inside_one_window_is_found_there():
    rng = np.random.default_rng(21)
    values = np.concatenate([rng.normal(100, 0.2, 60), rng.normal(104, 0.2, 60)])
    values[40:] += 2
    (change,) = c.find_changes(values, windows=["a"] * 60 + ["b"] * 60)
    assert change.index == 40


def test_windows_by_literal():
    medians, starts = c.window_medians(np.array([1.0, 3.0, 2.0, 9.0, 5.0]), ["a", "a", "a", "b", "a"])
    assert medians.tolist() == [2.0, 9.0, 5.0] and starts.tolist() == [0, 3, 4]
    with pytest.raises(c.SeriesError, match="5 points and 1 window names"):
        c.find_changes([1.0] * 5, windows=["a"])


def test_neighbour_correlation_by_literal():
    assert neighbour_correlation(np.array([1.0, 2.0] * 20)) == pytest.approx(-0.975)
    assert neighbour_correlation(np.arange(100.0)) > 0.9
    assert neighbour_correlation(np.ones(50)) == 0.0
