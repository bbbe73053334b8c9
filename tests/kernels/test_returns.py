from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fastpong.kernels import returns
from tests import naive

UNITS = {"point": returns.POINT, "game": returns.GAME}


def samples_of(rewards: Any, ended: Any, begins: Any, rows: int, gamma: float, unit: str) -> Any:
    """What the two kernels make of it: (t, env, return, game id) of each sample, and the ends."""
    ends = np.zeros_like(begins)
    most = returns.finished_rows(rewards, ended, begins, rows, UNITS[unit], ends)
    samples, game_ids = np.zeros(most, np.int64), np.zeros(most, np.int64)
    values = np.zeros(most, np.float32)
    count = returns.discounted_returns(rewards, ended, begins, ends, gamma, samples, values, game_ids)
    envs = rewards.shape[1]
    found = zip(samples[:count], values[:count], game_ids[:count], strict=True)
    return [(int(i) // envs, int(i) % envs, float(v), int(g)) for i, v, g in found], ends


def test_returns_and_advantages_match_the_golden_data(golden: dict[str, npt.NDArray[Any]]) -> None:
    rewards = golden["rewards"].astype(np.int8)[:, None]
    found, ends = samples_of(rewards, np.zeros_like(rewards), np.zeros(1, np.int64), len(rewards), 0.99, "point")
    assert ends[0] == len(rewards)
    values = np.array([item[2] for item in found], np.float32)
    np.testing.assert_allclose(values, golden["returns"], rtol=1e-4)
    returns.standardise(values, np.zeros(len(values), np.int64))
    np.testing.assert_allclose(values, golden["advantages"], rtol=1e-4, atol=1e-5)


def test_golden_game_of_twenty_one_points(golden: dict[str, npt.NDArray[Any]]) -> None:
    rewards = golden["game_rewards"].astype(np.int8).reshape(-1, 1)
    ended = np.zeros_like(rewards)
    ended[-1] = 1
    found, _ = samples_of(rewards, ended, np.zeros(1, np.int64), len(rewards), 0.99, "game")
    ref = naive.returns(rewards[:, 0].tolist(), 0.99)
    scored = int(np.flatnonzero(rewards)[-1]) + 1
    np.testing.assert_allclose([item[2] for item in found], ref[:scored], rtol=1e-5)


def same_games(items: list[Any]) -> list[list[int]]:
    """For each sample the samples of its game: the numbers of the games themselves do not matter."""
    return [[k for k, other in enumerate(items) if other[3] == item[3]] for item in items]


shape = st.tuples(st.integers(1, 30), st.integers(1, 4))


@given(st.data(), st.sampled_from(["point", "game"]), st.floats(0.5, 1.0))
def test_any_course_of_games(data: st.DataObject, unit: str, gamma: float) -> None:
    """Points, ends of games (also without a point: a game that was cut off) and rows in use, in any mixture."""
    size = data.draw(shape)
    rewards = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 1, -1])))
    ended = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 0, 1])))
    rows = data.draw(st.integers(0, size[0]))
    begins = np.array([data.draw(st.integers(0, rows)) for _ in range(size[1])], np.int64)
    ref = naive.finished_samples(rewards, ended, begins.tolist(), rows, gamma, unit)
    found, ends = samples_of(rewards, ended, begins, rows, gamma, unit)
    assert [item[:2] for item in found] == [item[:2] for item in ref]
    np.testing.assert_allclose([item[2] for item in found], [item[2] for item in ref], rtol=1e-5)
    assert same_games(found) == same_games(ref)
    assert (ends >= begins).all() and (ends <= rows).all()


@given(st.lists(st.tuples(st.floats(-1, 1, width=32), st.integers(0, 3)), min_size=1, max_size=40))
def test_standardise(items: list[tuple[float, int]]) -> None:
    items.sort(key=lambda item: item[1])
    values = np.array([item[0] for item in items], np.float32)
    game_ids = np.array([item[1] for item in items], np.int64)
    ref = naive.standardise(values.tolist(), game_ids.tolist())
    deviations = [np.std(values[game_ids == g].astype(float)) for g in game_ids]
    returns.standardise(values, game_ids)
    for comp, expected, deviation in zip(values, ref, deviations, strict=True):
        if deviation > 1e-6:  # next to the threshold rounding decides
            assert comp == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_equal_returns_have_no_advantage() -> None:
    values = np.full(5, -1.0, np.float32)
    returns.standardise(values, np.zeros(5, np.int64))
    assert (values == 0).all()


@given(st.data(), st.floats(0.5, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_advantages(data: st.DataObject, gamma: float, gae_lambda: float, return_lambda: float) -> None:
    size = (data.draw(st.integers(1, 20)), data.draw(st.integers(1, 3)))
    rewards = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 1, -1])))
    ended = data.draw(arrays(np.int8, size, elements=st.sampled_from([0, 0, 0, 1])))
    values = data.draw(arrays(np.float32, (size[0] + 1, size[1]), elements=st.floats(-1, 1, width=32)))
    advantages, targets = np.zeros(size, np.float32), np.zeros(size, np.float32)
    returns.advantages_of(rewards, ended, values, gamma, gae_lambda, return_lambda, advantages, targets)
    ref_advantages = naive.advantages_of(rewards, ended, values, gamma, gae_lambda)[0]
    ref_targets = naive.advantages_of(rewards, ended, values, gamma, return_lambda)[1]
    np.testing.assert_allclose(advantages, ref_advantages, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(targets, ref_targets, rtol=1e-4, atol=1e-5)
