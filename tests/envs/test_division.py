import functools
import math

import numpy as np
import pytest

from fastpong.arrays import I64
from fastpong.envs.division import acting_workers, check_workers, divide, own_envs
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import UsageError
from fastpong.kernels.compile.barrier import arrive
from fastpong.learners.threads import Threads, learner_threads
from fastpong.parallel import machine
from fastpong.parallel.comm import Serial, env_range
from fastpong.parallel.machine import usable_cores


@pytest.mark.parametrize(
    ("envs", "workers", "groups", "own"),
    [(64, 16, 2, 0), (5, 3, 2, 0), (7, 1, 3, 0), (1, 1, 1, 0), (9, 4, 4, 0), (64, 1, 2, 8), (9, 2, 2, 1)],
)
def test_each_env_has_a_worker_and_a_group(envs: int, workers: int, groups: int, own: int) -> None:
    division = divide(envs, workers, groups, own)
    assert len(division.owned) == workers + (own > 0) and (not own or division.owned[-1] == range(envs - own, envs))
    assert [env for owned in division.owned for env in owned] == list(range(envs))
    assert sorted(np.concatenate(division.groups)) == list(range(envs))
    assert max(map(len, division.owned)) == len(division.owned[0]) <= -(-(envs - own) // workers)
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


@pytest.fixture
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """As on a machine with so many cores."""
    count = int(request.param)
    monkeypatch.setattr(machine, "allowed_cores", lambda: set(range(count)))
    monkeypatch.setattr(machine, "core_quota", lambda: math.inf)
    return count


def arrive_as(seen: set[int], thread: int, progress: I64) -> bool:
    """Leave one's number, and wait for the others."""
    seen.add(thread)
    return arrive(progress, thread, 1)


@pytest.mark.parametrize(
    ("cores", "alone", "of_four"),
    [
        (1, (1, 1), (1, 1)),
        (2, (1, 2), (1, 1)),
        (4, (3, 4), (1, 1)),
        (8, (4, 8), (1, 2)),
        (16, (4, 8), (1, 4)),
        (128, (4, 8), (1, 8)),
    ],
    indirect=["cores"],
)
def test_what_is_chosen_for_so_many_cores(cores: int, alone: tuple[int, int], of_four: tuple[int, int]) -> None:
    """Env subprocesses and learner threads, of one process, and of each of four ranks."""
    for ranks, expected in ((1, alone), (4, of_four)):
        envs, comm = len(env_range(64, 0, ranks)), Serial(ranks)
        comm.local_size = ranks
        workers, threads = acting_workers(envs, None, DEFAULT_ENGINE, ranks), set[int]()
        learner = Threads(learner_threads(comm))
        learner.run_with_barrier(functools.partial(arrive_as, threads))
        learner.close()
        assert (workers, len(threads)) == expected
        owned, _, groups, parts = divide(envs, workers, 2)
        assert {len(own) for own in owned} <= {envs // workers, envs // workers + 1}
        assert [len(group) for group in groups] == [envs // 2] * 2
        assert [len(part) for part in parts] == [workers] * 2  # messages for a step of a group


@pytest.mark.parametrize("cores", [16], indirect=True)
def test_ale_takes_all_cores_and_many_envs_of_the_console_all_but_one(cores: int) -> None:
    assert acting_workers(64, None, "ale") == check_workers(64, None) == cores
    assert acting_workers(512, None, "console") == cores - 1
    assert acting_workers(64, 7, "console") == 7
    assert [own_envs(64, *rest) for rest in ((1, "console"), (2, "console"), (1, "ale"))] == [16, 0, 0]
    with pytest.raises(UsageError, match="64 or fewer"):
        acting_workers(64, 65, "console")


@pytest.mark.parametrize("cores", [16], indirect=True)
def test_as_many_subprocesses_start(cores: int) -> None:
    with VectorEnv(24) as envs:
        envs.reset()
        envs.step(np.zeros(24, np.int64))
        assert len({process.pid for process in envs.processes}) == cores
        assert [len(group) for group in envs.groups] == [12, 12] and not envs.losses.count
