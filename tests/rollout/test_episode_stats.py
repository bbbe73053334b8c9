import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpong.parallel.comm import Communicator, Serial, env_range
from fastpong.parallel.sharding import cut, join
from fastpong.rollout.episode_stats import LAYOUT, EpisodeStats, Game
from tests.support.ranks import run_ranks


def add(stats: EpisodeStats, rewards: list[int], ended: list[int]) -> None:
    stats.add(np.array(rewards, np.int8), np.array(ended, np.int8))


def test_scores_games_and_points() -> None:
    stats = EpisodeStats(2, 0.9)
    assert stats.score is None and stats.game_length is None and stats.point_rate() is None
    add(stats, [1, -1], [0, 0])
    add(stats, [-1, -1], [1, 0])
    add(stats, [0, 1], [0, 1])
    assert (stats.steps, stats.games, stats.score) == (6, 0, None)
    stats.synchronise()
    assert (stats.steps, stats.games, stats.batch_games) == (6, 2, 2)
    assert stats.score == -0.5 and stats.net_points == -1
    assert stats.game_length == 2.5
    assert stats.running_reward == pytest.approx(0.9 * 0 + 0.1 * -1)
    assert stats.point_rate() == pytest.approx(2 / 5)
    assert stats.point_rate() is None
    stats.begin_batch()
    assert (stats.games, stats.batch_games) == (2, 0)


def test_the_target_needs_a_hundred_games() -> None:
    stats = EpisodeStats(1, 0.99)
    for game in range(101):
        assert stats.reached(21) == (game >= 100)
        for _ in range(21):
            add(stats, [1], [0])
        add(stats, [0], [1])
        stats.synchronise()
    assert not stats.reached(21.5)
    assert stats.score == 21


def test_games_that_began_before_the_others_were_forgotten_do_not_count() -> None:
    stats = EpisodeStats(2, 0.9)
    add(stats, [-1, -1], [1, 0])
    stats.synchronise()
    assert stats.score == -1
    stats.forget_games()
    assert stats.score is None
    resumed = EpisodeStats(2, 0.9)
    resumed.load_state(stats.state())
    for one in (stats, resumed):
        add(one, [0, -1], [0, 1])
        one.synchronise()
        assert (one.games, one.score) == (2, None)
        add(one, [1, 0], [1, 0])
        add(one, [0, -1], [0, 1])
        one.synchronise()
        assert (one.score, one.game_length) == (0, 2)  # of a game that began at once, and of a later one


def test_state() -> None:
    one, two = EpisodeStats(3, 0.99), EpisodeStats(3, 0.99)
    rng = np.random.default_rng(0)
    for stats in (one, two):
        if stats is two:
            two.load_state(one.state())
        for _ in range(500):
            stats.add(rng.integers(-1, 2, 3).astype(np.int8), (rng.random(3) < 0.02).astype(np.int8))
        stats.synchronise()
        rng = np.random.default_rng(0)
    assert two.steps == 3000
    assert two.games == 2 * one.games
    three = EpisodeStats(3, 0.99)
    three.load_state(two.state())
    for name, array in two.state().items():
        np.testing.assert_array_equal(three.state()[name], array, err_msg=name)


outcomes = st.tuples(st.sampled_from([0, 0, 1, -1, 2]), st.sampled_from([0, 0, 1]))
"""Reward of a step, and whether it ended a game; points may come in the step that ends one, and two at once."""


@given(st.data(), st.integers(0, 5))
def test_any_course_of_games(data: st.DataObject, offset: int) -> None:
    """Against a plain loop over the whole history of each env."""
    envs = data.draw(st.integers(1, 4))
    steps = data.draw(st.lists(st.lists(outcomes, min_size=envs, max_size=envs), max_size=12))
    stats, counted = (EpisodeStats(10, 0.9, range(offset, offset + envs)) for _ in range(2))
    for step in steps:
        for one in (stats, counted):
            add(one, [reward for reward, _ in step], [ended for _, ended in step])
    finished = []
    for env in range(envs):
        score = length = 0
        for t, step in enumerate(steps):
            score, length = score + step[env][0], length + 1
            if step[env][1]:
                finished.append(Game(10 * (t + 1), offset + env, score, length))
                score = length = 0
    rewards = [reward for step in steps for reward, _ in step]
    assert stats.steps == 10 * len(steps)
    counted.synchronise()
    assert counted.won == sum(reward for reward in rewards if reward > 0)
    assert counted.lost == -sum(reward for reward in rewards if reward < 0)
    assert counted.net_points == sum(rewards) == sum(point.reward for point in counted.new_points)
    assert [(point.steps, point.env - offset) for point in counted.new_points] == [
        (10 * (t + 1), env) for t, step in enumerate(steps) for env in range(envs) if step[env][0]
    ]
    assert [game for game, _ in counted.new_games] == sorted(finished)
    assert not finished or counted.new_games[-1][1] == counted.running_reward
    counted.synchronise()
    assert not finished or counted.new_games  # until they are told
    counted.forget_new()
    assert not counted.new_points and not counted.new_games
    assert stats.take_finished() == sorted(finished)
    assert stats.take_finished() == []
    stats.synchronise()
    assert (stats.won, stats.lost, stats.games, stats.new_points) == (0, 0, 0, [])  # they were taken


@given(st.lists(st.lists(outcomes, min_size=5, max_size=5), max_size=30), st.integers(1, 4))
def test_ranks_count_what_one_process_counts(steps: list[list[tuple[int, int]]], ranks: int) -> None:
    """Whatever the number of ranks: games count in the order of steps, then of envs, over all of them."""

    def count(comm: Communicator) -> EpisodeStats:
        share = env_range(5, comm.rank, comm.size)
        stats = EpisodeStats(5, 0.9, share)
        for step in steps:
            rewards, ended = np.array(step[share.start : share.stop], np.int8).T
            stats.add(rewards, ended)
        stats.synchronise(comm)
        return stats

    whole, parts = count(Serial()), run_ranks(ranks, count)
    for part in parts:
        assert (part.score, part.running_reward, part.games) == (whole.score, whole.running_reward, whole.games)
    expected, states = whole.state(), [part.state() for part in parts]
    for name, array in join(states, LAYOUT).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    for rank, state in enumerate(states):
        for name, array in cut(expected, LAYOUT, env_range(5, rank, ranks)).items():
            np.testing.assert_array_equal(array, state[name], err_msg=name)
