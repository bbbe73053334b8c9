from pathlib import Path

import numpy as np
import pytest

from fastpong.arrays import U8
from fastpong.config import make_config
from fastpong.parallel.comm import Serial
from fastpong.policy import make_policy
from fastpong.rollout.returns import finished_batch, normalized
from tests import naive
from tests.support.mpi import run_script
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


def test_normalized_values_have_mean_0_and_deviation_1() -> None:
    values = np.random.default_rng(0).normal(1e3, 5, (30, 7)).astype(np.float32)
    scaled = normalized(values, Serial())
    assert scaled.dtype == np.float32 and scaled.shape == values.shape
    expected = naive.standardise(values.ravel().tolist(), [0] * values.size)
    np.testing.assert_allclose(scaled.ravel(), expected, atol=1e-3)
    np.testing.assert_array_equal(normalized(np.full(5, 3, np.float32), Serial()), 0)  # all equal
    signed = normalized(np.array([3, -4], np.float32), Serial(), centred=False)
    np.testing.assert_allclose(signed, np.array([3, -4]) / np.sqrt(12.5), rtol=1e-6)
    assert len(normalized(np.zeros(0, np.float32), Serial())) == 0


def test_ranks_normalize_over_all_of_them(tmp_path: Path) -> None:
    """One of three has no values at all."""
    done = run_script(
        3, tmp_path,
        "from fastpong.parallel.mpi import connect",
        "comm = connect()",
        "import numpy as np",
        "from fastpong.parallel.comm import Serial",
        "from fastpong.rollout.returns import normalized",
        "values = np.random.default_rng(1).normal(2, 3, 50).astype(np.float32)",
        "part = (slice(0, 20), slice(20, 20), slice(20, 50))[comm.rank]",
        "parts = comm.gather(normalized(values[part], comm))",
        "if comm.rank == 0: print(np.abs(np.concatenate(parts) - normalized(values, Serial())).max())",
    )  # fmt: skip
    assert done.returncode == 0 and float(done.stdout) < 1e-6, done.stderr
