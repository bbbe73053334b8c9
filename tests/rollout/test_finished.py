import numpy as np
import pytest

from fastpong.arrays import U8
from fastpong.config import make_config
from fastpong.policy import make_policy
from fastpong.rollout.finished import finished_batch
from tests import naive
from tests.support.rollouts import course_of_points, fill


@pytest.mark.parametrize("unit", ["point", "game"])
def test_batches_cover_what_is_finished_once(unit: str, real_screens: U8) -> None:
    rewards, ended = course_of_points()
    rollout = make_policy(make_config("karpathy", {"num_envs": 2})).make_rollout(2)
    fill(rollout, real_screens, (rewards, ended))
    seen: set[int] = set()
    for rows in (200, 290):
        ref = naive.finished_samples(rewards, ended, rollout.first_unused.tolist(), rows, 0.99, unit)
        batch = finished_batch(rollout, rows, unit, 0.99)
        assert batch.samples.tolist() == [t * 2 + n for t, n, _, _ in ref]
        expected = naive.standardise([value for _, _, value, _ in ref], [game for _, _, _, game in ref])
        np.testing.assert_allclose(batch.advantages, expected, rtol=1e-3, atol=1e-4)
        assert seen.isdisjoint(batch.samples.tolist())
        seen |= set(batch.samples.tolist())
        rollout.first_unused[:] = batch.ends
    ends = {"point": [289, 271], "game": [151, 91]}[unit]
    assert rollout.first_unused.tolist() == ends
    assert seen == {t * 2 + n for n in range(2) for t in range(ends[n])}


def test_where_nothing_is_finished_there_is_nothing_to_learn(real_screens: U8) -> None:
    rollout = make_policy(make_config("karpathy", {"num_envs": 2})).make_rollout(2)
    fill(rollout, real_screens, (np.zeros((9, 2), np.int8), np.zeros((9, 2), np.int8)))
    batch = finished_batch(rollout, 9, "point", 0.99)
    assert len(batch.samples) == len(batch.advantages) == 0 and batch.ends.tolist() == [0, 0]
