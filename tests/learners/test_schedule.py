from typing import Any

import pytest

from fastpong.config import make_config
from fastpong.learners.schedule import REINITS, Schedule


def schedule(**changes: Any) -> Schedule:
    settings = {
        "late_win_rate": 0.75, "late_by_step": 9000, "target_kl": 0.02, "target_kl_late": 0.0, "learning_rate": 1e-3,
        "logit_growth": 0.5, "reinit_win_rate": 0.0,
    }  # fmt: skip
    return Schedule(make_config("fast", {**settings, **changes}))


def test_the_late_phase_begins_when_enough_of_the_latest_1000_points_are_won() -> None:
    one = schedule()
    for batch in range(1, 10):
        one.adapt(batch, 100, 0, 0.02)  # all won, but fewer than 1000 points
    one.adapt(10, 0, 400, 0.02)  # 1300 points, of which the first 300 no longer count: 600 of 1000
    assert one.late_since is None and one.logit_factor(9.0) == 1.0
    for batch in range(11, 30):
        one.adapt(batch, 80, 20, 0.02)
        if one.late_since is not None:
            break
    # The 400 lost ones stay among the latest 1000 until 10 later batches make 1000 by themselves.
    assert one.late_since == 20
    assert one.logit_factor(0.3) == 1.5


def test_the_logits_grow_as_long_as_the_entropy_is_too_high() -> None:
    one = schedule(logit_growth_entropy=0.2)
    one.adapt(1, 2000, 0, 0.02)
    assert one.logit_factor(0.201) == 1.5 and one.logit_factor(0.199) == 1.0


def test_the_late_phase_begins_at_the_latest() -> None:
    one = schedule()
    one.adapt(8999, 0, 2000, 0.02)
    assert one.logit_factor(9.0) == 1.0
    one.adapt(9000, 0, 2000, 0.02)
    assert one.logit_factor(9.0) == 1.5


def test_the_late_phase_begins_on_demand() -> None:
    one = schedule()
    assert one.phase == "early"
    one.begin_late_phase(500)
    assert (one.phase, one.late_since) == ("late", 500)
    one.adapt(600, 0, 2000, 0.02)
    assert (one.phase, one.late_since) == ("late", 500)  # and it stays, whatever is won


def test_an_agent_that_wins_too_little_is_given_up_a_few_times() -> None:
    one = schedule(reinit_win_rate=0.5)
    assert not one.adapt(8999, 0, 2000, 1.0), "too early"
    assert one.rate < 1e-3
    assert one.adapt(9000, 0, 2000, 1.0)
    assert (one.reinits, one.began, one.rate, one.win_rate, one.phase) == (1, 9000, 1e-3, 0.0, "early")
    assert not one.adapt(17_999, 0, 2000, 0.02), "others have as much time"
    assert one.adapt(18_000, 490, 510, 0.02)
    assert not one.adapt(27_000, 500, 500, 0.02), "these win enough"
    assert (one.reinits, one.late_since) == (2, 27_000)
    assert not one.adapt(99_000, 0, 2000, 0.02), "and go on, whatever they win"
    never, other = schedule(), schedule(reinit_win_rate=0.5)
    for steps in range(9000, 60_000, 9000):
        assert not never.adapt(steps, 0, 2000, 0.02)
        assert other.adapt(steps, 0, 2000, 0.02) == (steps <= 9000 * REINITS)
    assert (never.late_since, other.late_since) == (9000, 9000 * (REINITS + 1))


def test_an_agent_that_wins_enough_is_not_given_up() -> None:
    one = schedule(reinit_win_rate=1.0, late_win_rate=0.5)
    assert not one.adapt(9000, 1200, 800, 0.02)
    assert one.late_since == 9000


def test_the_divergence_limits_the_rate() -> None:
    """A policy that moves in proportion to the rate: too far at first, and later less and less."""
    one = schedule()
    one.adapt(0, 0, 0, 0.001)
    assert one.rate == 1e-3  # never more than at the start
    for _ in range(60):
        one.adapt(0, 0, 0, 60.0 * one.rate)
    assert 60.0 * one.rate == pytest.approx(0.02, rel=0.01)
    for _ in range(60):
        one.adapt(0, 0, 0, 5.0 * one.rate)
    assert one.rate == 1e-3


def test_the_late_phase_has_a_divergence_of_its_own() -> None:
    one, same = schedule(target_kl_late=0.005), schedule()
    assert one.target_kl == same.target_kl == 0.02
    for either in (one, same):
        either.adapt(1, 2000, 0, 0.02)
    assert (one.target_kl, same.target_kl) == (0.005, 0.02)
    for either in (one, same):
        either.adapt(2, 0, 0, 0.02)
    assert one.rate < same.rate == 1e-3


def test_without_a_divergence_the_rate_stays() -> None:
    one = schedule(target_kl=0)
    one.adapt(0, 1, 1, 99.0)
    assert one.rate == 1e-3


def test_state() -> None:
    one, two = (schedule(reinit_win_rate=0.5) for _ in range(2))
    assert one.adapt(9000, 0, 2000, 0.05)
    for batch in range(12):
        one.adapt(batch, 70, 30, 0.05)
    two.load_state(one.state())
    for other in (one, two):
        for batch in range(12, 25):
            other.adapt(batch, 95, 5, 0.01)
    assert one.late_since == two.late_since is not None
    assert (one.rate, one.began, one.reinits) == (two.rate, two.began, two.reinits)
    assert one.phase == two.phase == "late"
