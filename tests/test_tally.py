import numpy as np
import pytest

from fastpong.tally import Tally

GAMES = np.zeros(2, np.int8)
"""Nothing is practised."""


def test_scores_games_and_points() -> None:
    tally = Tally(2, 0.9)
    assert tally.score is None and tally.point_rate() is None
    tally.add(np.array([1, -1], np.int8), np.array([0, 0], np.int8), GAMES)
    tally.add(np.array([-1, -1], np.int8), np.array([1, 0], np.int8), GAMES)
    tally.add(np.array([0, 1], np.int8), np.array([0, 1], np.int8), GAMES)
    assert (tally.steps, tally.games, tally.score) == (6, 0, None)
    tally.exchange()
    assert (tally.steps, tally.games, tally.batch_games) == (6, 2, 2)
    assert tally.score == -0.5 and tally.net == -1
    assert tally.mean_steps == 2.5
    assert tally.running == pytest.approx(0.9 * 0 + 0.1 * -1)
    assert tally.point_rate() == pytest.approx(2 / 5)
    assert tally.point_rate() is None


def test_the_target_needs_a_hundred_games() -> None:
    tally = Tally(1, 0.99)
    for game in range(101):
        assert tally.reached(21) == (game >= 100)
        for _ in range(21):
            tally.add(np.ones(1, np.int8), np.array([0], np.int8), GAMES[:1])
        tally.add(np.zeros(1, np.int8), np.ones(1, np.int8), GAMES[:1])
        tally.exchange()
    assert not tally.reached(21.5)
    assert tally.score == 21


def test_state() -> None:
    one, two = Tally(3, 0.99), Tally(3, 0.99)
    rng = np.random.default_rng(0)
    for tally in (one, two):
        if tally is two:
            two.load_state(one.state())
        for _ in range(500):
            tally.add(
                rng.integers(-1, 2, 3).astype(np.int8), (rng.random(3) < 0.02).astype(np.int8), np.zeros(3, np.int8)
            )
        tally.exchange()
        rng = np.random.default_rng(0)
    assert two.steps == 3000
    assert two.games == 2 * one.games


def test_practice_is_steps_and_nothing_else() -> None:
    tally = Tally(1, 0.99)
    for reward, ended, practised in ((1, 0, 0), (-1, 2, 0), (1, 2, 1), (-1, 2, 1), (0, 0, 1), (-1, 1, 0)):
        tally.add(*(np.array([number], np.int8) for number in (reward, ended, practised)))
    tally.exchange()
    assert (tally.steps, tally.games, tally.net, tally.score, tally.mean_steps) == (6, 1, -1, -1.0, 3.0)
    assert tally.point_rate() == pytest.approx(1 / 3)
