from typing import Any

import pytest

from fastpong.config import make_config
from fastpong.learners.schedule import Schedule


def schedule(**changes: Any) -> Schedule:
    settings = {
        "late_win_rate": 0.75, "late_by_step": 9000, "target_kl": 0.02, "target_kl_late": 0.0, "learning_rate": 1e-3,
        "entropy_coef": 0.01, "logit_growth": 0.5,
    }  # fmt: skip
    return Schedule(make_config("fast", {**settings, **changes}))


def test_the_late_phase_begins_when_enough_of_the_latest_1000_points_are_won() -> None:
    one = schedule()
    for _ in range(9):
        one.adapt(1, 100, 0, 0.02)  # all won, but fewer than 1000 points
    one.adapt(1, 0, 400, 0.02)  # 1300 points, of which the first 300 no longer count: 600 of 1000
    assert one.phase == "early" and one.logit_factor(9.0) == 1.0
    for _ in range(9):
        one.adapt(1, 80, 20, 0.02)
        assert one.phase == "early"
    # The 400 lost ones stay among the latest 1000 until 10 later batches make 1000 by themselves.
    one.adapt(1, 80, 20, 0.02)
    assert one.phase == "late" and one.logit_factor(0.9) == 1.5
    one.adapt(1, 0, 2000, 0.02)
    assert one.phase == "late"  # and it stays, whatever is won


def test_the_late_phase_begins_at_the_latest() -> None:
    one = schedule()
    one.adapt(8999, 0, 2000, 0.02)
    assert one.phase == "early"
    one.adapt(9000, 0, 2000, 0.02)
    assert one.phase == "late" and one.learning_rate == 1e-3  # but nothing is annealed


def test_the_logits_grow_as_long_as_the_entropy_is_too_high() -> None:
    one = schedule(logit_growth_entropy=0.2)
    one.late = True
    for lost, level in ((2000, 0.2), (250, 0.2), (125, 0.1), (0, 0.01)):
        one.adapt(1, 1000 - lost if lost < 1000 else 0, lost, 0.02)
        one.adapt(1, 1000 - lost if lost < 1000 else 0, lost, 0.02)
        assert one.logit_factor(level * 1.01) == 1.5 and one.logit_factor(level * 0.99) == 1.0


def test_what_is_annealed_follows_the_points_that_are_lost() -> None:
    one = schedule()
    found = []
    for won in (0, 400, 750, 875, 1000):
        one.adapt(1, won, 1000 - won, 0.02)
        found.append((one.learning_rate, one.entropy_coef))
    assert found == [pytest.approx((1e-3 * f, 0.01 * f)) for f in (1.0, 1.0, 1.0, 0.5, 0.05)]
    one.adapt(1, 600, 400, 0.02)
    assert one.entropy_coef == pytest.approx(0.01)  # and back, if it loses again


def test_the_divergence_limits_the_rate() -> None:
    """A policy that moves in proportion to the rate: too far at first, and later less and less."""
    one = schedule()
    one.adapt(1, 0, 0, 0.001)
    assert one.learning_rate == 1e-3  # never more than at the start
    for _ in range(60):
        one.adapt(1, 0, 0, 60.0 * one.learning_rate)
    assert 60.0 * one.learning_rate == pytest.approx(0.02, rel=0.01)
    for _ in range(60):
        one.adapt(1, 0, 0, 5.0 * one.learning_rate)
    assert one.learning_rate == 1e-3


def test_the_late_phase_has_a_divergence_of_its_own() -> None:
    one, same = schedule(target_kl_late=0.005), schedule()
    assert one.target_kl == same.target_kl == 0.02
    for either in (one, same):
        either.adapt(1, 1500, 500, 0.02)
    assert (one.target_kl, same.target_kl) == (0.005, 0.02)
    for either in (one, same):
        either.adapt(1, 0, 0, 0.02)
    assert one.learning_rate < same.learning_rate == pytest.approx(1e-3, rel=1e-3)


def test_without_a_divergence_the_rate_follows_the_points_alone() -> None:
    one = schedule(target_kl=0)
    one.adapt(1, 0, 2000, 99.0)
    assert one.learning_rate == 1e-3
    one.adapt(1, 875, 125, 99.0)
    assert one.learning_rate == pytest.approx(5e-4)


def test_state() -> None:
    one, two = schedule(), schedule()
    for _ in range(12):
        one.adapt(1, 70, 30, 0.05)
    two.load_state(one.state())
    for other in (one, two):
        for _ in range(13):
            other.adapt(1, 95, 5, 0.01)
    assert one.rate == two.rate
    assert one.entropy_coef == two.entropy_coef < 0.01
    assert one.phase == two.phase == "late"
