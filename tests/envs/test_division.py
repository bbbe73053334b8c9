import numpy as np
import pytest

from fastpong.envs.division import check_workers, divide
from fastpong.parallel.machine import usable_cores


@pytest.mark.parametrize(("envs", "workers", "groups"), [(64, 16, 2), (5, 3, 2), (7, 1, 3), (1, 1, 1), (9, 4, 4)])
def test_each_env_has_a_worker_a_group_and_a_row(envs: int, workers: int, groups: int) -> None:
    division = divide(envs, workers, groups)
    assert np.concatenate(division.owned).tolist() == list(range(envs)) == sorted(np.concatenate(division.groups))
    sizes = [len(group) for group in division.groups]
    assert max(sizes) - min(sizes) <= 1
    most = len(division.owned[0])
    for worker, owned in enumerate(division.owned):
        np.testing.assert_array_equal(division.rows[owned] // most, worker)
        cut = np.split(owned, division.cuts[worker])
        for group, part in enumerate(cut):
            places = [place for index, place in division.parts[group] if index == worker]
            assert [division.groups[group][place].tolist() for place in places] == [part.tolist()] * (len(part) > 0)
    assert len(set(division.rows.tolist())) == envs


def test_one_worker_per_core_but_no_more_than_envs() -> None:
    assert check_workers(64, None) == min(64, usable_cores())
    assert check_workers(1, None) == 1
    assert check_workers(64, None, local_size=usable_cores()) == 1 == check_workers(64, None, local_size=1000)
    assert check_workers(64, 5, local_size=1000) == 5
