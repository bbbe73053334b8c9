from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpong.kernels import outcomes
from tests import naive

take_over: Any = outcomes.take_over


@given(st.integers(0, 99))
def test_take_over(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slots, games = rng.permutation(9)[:4], rng.permutation(7)[:4]
    shared = rng.integers(-1, 3, (4, 9)).astype(np.int8)
    rows = np.full((4, 7), 9, np.int8)
    take_over(slots, games, *shared, *rows)
    for array, row in zip(shared, rows, strict=True):
        taken = dict(zip(games.tolist(), array[slots].tolist(), strict=True))
        assert row.tolist() == [taken.get(game, 9) for game in range(7)]


@given(st.data())
def test_count_step(data: st.DataObject) -> None:
    """Against a plain loop over the whole history of each game."""
    games = data.draw(st.integers(1, 4))
    step = st.tuples(st.sampled_from([0, 0, 1, -1, 2]), st.sampled_from([0, 0, 1, 2]), st.sampled_from([0, 0, 1]))
    steps = data.draw(st.lists(st.lists(step, min_size=games, max_size=games), max_size=8))
    score, length, over = np.zeros(games, np.int64), np.zeros(games, np.int64), np.zeros(games, np.int64)
    for now in range(len(steps)):
        rewards, ended, practised = np.array(steps[now], np.int8).T.copy()
        won, lost, count = outcomes.count_step(rewards, ended, practised, score, length, over)
        counted = [reward for reward, _, other in steps[now] if not other]
        assert won == sum(reward for reward in counted if reward > 0)
        assert lost == -sum(reward for reward in counted if reward < 0)
        assert over[:count].tolist() == [game for game in range(games) if steps[now][game][1] == 1]
        for game in range(games):
            history = [at[game] for at in steps[: now + 1]]
            assert (score[game], length[game]) == naive.score_of(history)
        score[over[:count]] = length[over[:count]] = 0
