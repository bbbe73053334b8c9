import numpy as np
import pytest

from fastpong.envs.division import check_workers, divide
from fastpong.parallel.machine import usable_cores


@pytest.mark.parametrize(("envs", "workers", "groups"), [(64, 16, 2), (5, 3, 2), (7, 1, 3), (1, 1, 1), (9, 4, 4)])
def test_each_env_has_a_worker_and_a_group(envs: int, workers: int, groups: int) -> None:
    division = divide(envs, workers, groups)
    assert [env for owned in division.owned for env in owned] == list(range(envs))
    assert sorted(np.concatenate(division.groups)) == list(range(envs))
    assert max(map(len, division.owned)) == len(division.owned[0]) <= -(-envs // workers)
    sizes = [len(group) for group in division.groups]
    assert max(sizes) - min(sizes) <= 1
    for worker, (owned, cuts) in enumerate(zip(division.owned, division.cuts, strict=True)):
        assert [env for part in cuts for env in part] == list(range(len(owned)))
        for group, part in enumerate(cuts):
            places = [place for index, place in division.parts[group] if index == worker]
            theirs = [owned[env] for env in part]
            assert [division.groups[group][place].tolist() for place in places] == [theirs] * (len(part) > 0)


def test_one_worker_per_core_but_no_more_than_envs() -> None:
    assert check_workers(64, None) == min(64, usable_cores())
    assert check_workers(1, None) == 1
    assert check_workers(64, None, local_size=usable_cores()) == 1 == check_workers(64, None, local_size=1000)
    assert check_workers(64, 5, local_size=1000) == 5
