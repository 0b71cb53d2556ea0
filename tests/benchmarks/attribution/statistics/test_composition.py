"""A share that rose is told apart from a class that slowed."""

import numpy as np
import pytest

from benchmarks.attribution.statistics.change_points import SeriesError, find_changes
from benchmarks.attribution.statistics.composition import explain_share


def explained(class_factor: float, others_factor: float):
    rng = np.random.default_rng(3)
    step = np.arange(80) >= 50
    class_time = 200 * np.where(step, class_factor, 1) * rng.lognormal(0, 0.005, 80)
    others = 800 * np.where(step, others_factor, 1) * rng.lognormal(0, 0.005, 80)
    wall = class_time + others
    (change,) = find_changes(class_time / wall)
    return explain_share(class_time, wall, change, 0, 80)


@pytest.mark.parametrize(
    ("class_factor", "others_factor", "cause", "words"),
    [
        (1.2, 1.0, "class slowed", "class slowed x1.198 (share 20.0% -> 23.1%)"),
        (1.0, 0.8, "others shrank", "only the share rose (share 20.0% -> 23.8%): others shrank x0.799"),
        (1.0, 1.3, "others grew", "only the share fell"),
        (0.7, 1.0, "class got faster", "class got faster x0.699 (share"),
        (0.9, 0.6, "class and others moved", "share 20.0% -> 27.3%: class x0.899, others x0.599"),
    ],
)
def test_causes(class_factor, others_factor, cause, words):
    change = explained(class_factor, others_factor)
    assert change.cause == cause
    assert change.words.startswith(words)


def test_a_class_larger_than_its_wall_is_refused():
    values = np.array([1.0] * 20 + [2.0] * 10)
    (change,) = find_changes(values)
    with pytest.raises(SeriesError, match=r"point 20: the class takes 2\.0, more than its wall 1\.5"):
        explain_share(values, np.full(30, 1.5), change, 0, 30)
    with pytest.raises(SeriesError, match="do not belong together"):
        explain_share(values, np.ones(3), change, 0, 30)
