"""Medians and intervals of groups, against plain Python."""

import math
import random
import statistics

import numpy as np
import pytest

from fastpong.show.groups import Group, Run, band, interval, reached, spread


def bootstrap(values: list[float], resamples: int = 4000) -> tuple[float, float]:
    """Return where 95 % of the medians of resamples lie."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(resamples))
    return medians[round(0.025 * resamples)], medians[round(0.975 * resamples) - 1]


@pytest.mark.parametrize("runs", [5, 8, 21])
def test_the_interval_is_that_of_a_plain_bootstrap(runs: int) -> None:
    values = np.random.default_rng(runs).normal(size=(runs, 3))
    for column, bounds in enumerate(zip(*interval(values), strict=True)):
        ordered = sorted(values[:, column].tolist())
        for ours, plain in zip(bounds, bootstrap(ordered), strict=True):
            near = [i for i, value in enumerate(ordered) if value <= plain][-1]
            assert ordered[max(0, near - 1)] <= ours <= ordered[min(runs - 1, near + 2)]  # the same rank but for luck


def test_a_median_stands_where_all_runs_are_known() -> None:
    runs = [Run([(i, -21.0), (10 + i, -21.0 + 2 * i)], {}) for i in range(5)]
    whole = band(Group("a", runs))
    assert whole and (whole.x[0], whole.x[-1]) == (4, 10)
    for x, middle in zip(whole.x, whole.median, strict=True):
        assert middle == pytest.approx(statistics.median(-21 + 2 * i * (x - i) / 10 for i in range(5)))
    assert whole.low is not None and whole.high is not None
    assert (whole.low <= whole.median).all() and (whole.median <= whole.high).all() and (whole.low < whole.high).any()
    few = band(Group("a", runs[:4]))
    assert few and few.low is None and few.high is None
    assert band(Group("a", [Run([(0, 1.0), (1, 1.0)], {}), Run([(2, 1.0), (3, 1.0)], {})])) is None


def test_a_run_that_was_stopped_may_have_reached_a_score_later() -> None:
    def group(*runs: tuple[float, float | None]) -> Group:
        return Group("a", [Run([(0, 0.0), (end, 0.0)], {} if at is None else {17: at}) for end, at in runs])

    all_did = reached(group((3, 1.0), (3, 2.0), (3, 2.5)), 17)
    assert (all_did.median, all_did.sure, all_did.low, all_did.told_misses(1)) == (2.0, True, None, "")
    later = reached(group((3, 1.0), (3, 2.0), (3, None)), 17)  # whenever it does, the median is 2
    assert (later.median, later.sure, later.told_misses(1)) == (2.0, True, "1 of 3 not by 3.0")
    assert reached(group((3, None)), 17).told_misses(1) == "not by 3.0"
    stopped = reached(group((3, 1.0), (3, 2.0), (1.5, None)), 17)  # it may have done so at 1.6
    assert (stopped.median, stopped.sure) == (1.5, False)
    five = reached(group((3, 1.0), (3, 2.0), (2.5, None), (3, None), (3, None)), 17)
    assert not five.sure and five.median == 2.5 and five.told_misses(1) == "3 of 5 not by 2.5 … 3.0"
    assert five.low == 1.0 and five.high == math.inf


def test_labels_do_not_cover_one_another() -> None:
    assert spread([], 2, 0, 10) == [] and spread([4], 2, 0, 10) == [4]
    assert spread([5, 1, 5.5], 2, 0, 10) == [5, 1, 7]
    assert spread([10, 10, 9], 2, 0, 10) == pytest.approx([8, 10, 6])
    assert spread([0] * 11, 2, 0, 10) == pytest.approx([*range(11)])
