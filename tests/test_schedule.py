from typing import Any

import pytest

from fastpong.config import make_config
from fastpong.practice import Attempts
from fastpong.schedule import Schedule


def schedule(**changes: Any) -> Schedule:
    settings = {
        "sharpen_steps": 2000,
        "kl": 0.02,
        "learning_rate": 1e-3,
        "schedule_steps": 10_000,
        "schedule_floor": 0.1,
        "entropy": 0.01,
        "sharpen": 0.5,
    }
    return Schedule(make_config("fast", {**settings, "sharpen_points": 0.75, "sharpen_latest": 9000, **changes}))


def test_the_agent_has_won_when_enough_of_the_latest_1000_points_are() -> None:
    one = schedule()
    for batch in range(1, 10):
        one.add(batch, 100, 0, 0.02)  # all won, but fewer than 1000 points
    one.add(10, 0, 400, 0.02)  # 1300 points, of which the first 300 no longer count: 600 of 1000
    assert one.won_by is None and one.growth(10, 9.0) == 1.0
    for batch in range(11, 30):
        one.add(batch, 80, 20, 0.02)
        if one.won_by:
            break
    # The 400 lost ones stay among the latest 1000 until 10 later batches make 1000 by themselves.
    assert one.won_by == 20
    assert one.growth(21, 0.3) == 1.5


def test_the_logits_grow_as_long_as_the_entropy_is_too_high() -> None:
    one = schedule(sharpen_entropy=0.2)
    one.add(1, 2000, 0, 0.02)
    for steps, level in ((0, 0.2), (5000, 0.1), (10**6, 0.02)):
        assert one.growth(steps, level * 1.01) == 1.5 and one.growth(steps, level * 0.99) == 1.0


def test_it_grows_at_the_latest() -> None:
    one = schedule()
    one.add(8999, 0, 2000, 0.02)
    assert one.growth(8999, 9.0) == 1.0
    one.add(9000, 0, 2000, 0.02)
    assert one.growth(9000, 9.0) == 1.5
    assert one.left(9000) == pytest.approx(2 / 11)  # the fall ends later than planned


def test_the_discount_rises_as_the_rate_falls() -> None:
    one = schedule(gamma=0.9, gamma_end=1.0)
    assert [one.gamma(steps) for steps in (0, 5000, 10**6)] == pytest.approx([0.9, 0.95, 0.99])


def test_ever_fewer_points_begin_held() -> None:
    one = schedule(held_until=1000)
    assert [one.held_share(steps) for steps in (0, 250, 1000, 10**6)] == [1.0, 0.75, 0.0, 0.0]


def test_ever_fewer_attempts_once_enough_points_are_won() -> None:
    one = schedule(practice=3, practice_until=900, practice_points=0.5)
    one.add(1, 900, 0, 0.02)
    assert one.attempts(0).number == 0  # fewer than 1000 points
    one.add(2, 0, 100, 0.02)
    assert [one.attempts(steps).number for steps in (0, 250, 500, 700, 890, 900, 10**6)] == [3, 3, 2, 1, 1, 0, 0]
    one.add(3, 0, 801, 0.02)
    assert one.attempts(0).number == 0
    assert schedule(practice=0, practice_points=0.0).attempts(0).number == 0
    other = schedule(practice=5, practice_points=0.0, practice_end="last", practice_shifted=0.5)
    assert other.attempts(0) == Attempts(5, after_wins=True, shifted=0.5)


def test_the_divergence_limits_the_rate() -> None:
    """A policy that moves in proportion to the rate: too far at first, and later less and less."""
    one = schedule(schedule_steps=10**9)
    one.add(0, 0, 0, 0.001)
    assert one.learning_rate(0) == 1e-3  # never more than at the start
    for _ in range(60):
        one.add(0, 0, 0, 60.0 * one.learning_rate(0))
    assert 60.0 * one.learning_rate(0) == pytest.approx(0.02, rel=0.01)
    for _ in range(60):
        one.add(0, 0, 0, 5.0 * one.learning_rate(0))
    assert one.learning_rate(0) == 1e-3


def test_another_divergence_once_it_has_won() -> None:
    one, same = schedule(kl_won=0.005), schedule()
    assert one.kl == same.kl == 0.02
    for either in (one, same):
        either.add(1, 2000, 0, 0.02)
    assert (one.kl, same.kl) == (0.005, 0.02)
    for either in (one, same):
        either.add(2, 0, 0, 0.02)
    assert one.learning_rate(2) < same.learning_rate(2) == pytest.approx(1e-3, rel=1e-3)


def test_without_a_divergence_the_rate_falls_in_a_line() -> None:
    one = schedule(kl=0)
    one.add(0, 1, 1, 99.0)
    assert [one.learning_rate(steps) for steps in (0, 2500, 9500, 10**6)] == pytest.approx([1e-3, 7.5e-4, 1e-4, 1e-4])
    assert one.entropy(5000) == pytest.approx(0.005)


def test_state() -> None:
    one, two = schedule(), schedule()
    for batch in range(12):
        one.add(batch, 70, 30, 0.05)
    two.load_state(one.state())
    for other in (one, two):
        for batch in range(12, 25):
            other.add(batch, 95, 5, 0.01)
    assert one.won_by == two.won_by is not None
    assert one.rate == two.rate
