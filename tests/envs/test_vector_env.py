import contextlib
import os
from typing import Any

import numpy as np
import psutil
import pytest

from fastpong.config import make_config
from fastpong.envs.base import LocalEnvs
from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import EnvError, UsageError
from fastpong.system import allowed_cores
from tests.support.envs import play_at_random
from tests.support.interruption import Interruption


@pytest.mark.parametrize(
    ("env_count", "workers", "groups", "own", "engine"),
    [
        *((*one, 0, "console") for one in [(5, 2, 2), (5, 3, 2), (5, 5, 2), (7, 1, 3), (1, 1, 2)]),
        *((*one, "console") for one in [(5, 1, 2, 1), (6, 2, 2, 3), (9, 1, 3, 2)]),
        *((5, 3, 2, own, "ale") for own in (0, 2)),
    ],
)
def test_any_distribution_plays_the_same_games(
    env_count: int, workers: int, groups: int, own: int, engine: str
) -> None:
    with VectorEnv(env_count, workers, seed=6, groups=groups, own=own, engine=engine) as envs:
        assert len({process.pid for process in envs.processes}) == workers
        assert sorted(np.concatenate(envs.groups).tolist()) == list(range(env_count))
        assert max(map(len, envs.groups)) - min(map(len, envs.groups)) <= 1
        envs.reset()
        seen = play_at_random(envs, 60)
    alone = LocalEnvs(range(env_count), seed=6, engine=engine)
    alone.reset()
    assert play_at_random(alone, 60) == seen


def test_snapshot_moves_to_other_workers(engine: str) -> None:
    with VectorEnv(5, 2, seed=3, own=1, engine=engine) as envs:
        envs.reset()
        play_at_random(envs, 40)
        for group, members in enumerate(envs.groups):
            envs.send(group, np.zeros(len(members), np.uint8))  # steps in flight belong to the snapshot
        saved = envs.snapshot()
        expected = play_at_random(envs, 30)
    assert saved["steps"].tolist() == [41] * 5
    with VectorEnv(5, 2, seed=3, own=2, engine=engine) as envs:
        envs.restore(saved)
        np.testing.assert_array_equal(envs.screens, saved["screens"])
        assert play_at_random(envs, 30) == expected


def test_ctrl_c_during_a_step_leaves_nothing_to_the_next_run() -> None:
    """At any line, also where this process steps envs itself and others have, or have not, been told of the step."""
    with VectorEnv(5, 1, seed=3, own=2) as envs:
        envs.reset()
        expected = play_at_random(envs, 5)
        line = unfinished = 0
        while True:
            line += 3
            with Interruption(line) as interruption, contextlib.suppress(KeyboardInterrupt):
                play_at_random(envs, 1)
            if interruption.left > 0:
                break  # there are no more lines
            try:
                envs.snapshot()
            except EnvError:
                unfinished += 1
            envs.reset(seed=3)
            assert play_at_random(envs, 5) == expected
        assert line > unfinished * 3 > 15


def test_ranks_step_their_share_of_the_same_envs() -> None:
    config = make_config("fast", {"num_envs": 5, "seed": 3, "num_actions": 2, "frame_skip": 3})
    with VectorEnv.of(config, 2) as envs, VectorEnv.of(config, 1, range(2, 4)) as share:
        assert (share.env_count, share.env_offset) == (2, 2)
        both = []
        for some in (envs, share):
            some.reset()
            for group in range(len(some.groups)):
                some.send(group, np.ones(len(some.groups[group]), np.uint8))
                some.recv(group)
            both.append([array.copy() for array in (some.arrays["courts"], some.rewards, some.ended)])
        for whole, part in zip(*both, strict=True):
            np.testing.assert_array_equal(whole[2:4], part)
        assert (both[0][0][2] != both[0][0][3]).any()


def test_it_is_a_gymnasium_environment() -> None:
    with VectorEnv(4, 2, seed=1) as envs:
        observation, _ = envs.reset(seed=1)
        assert envs.observation_space.contains(observation)
        observation, rewards, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(observation)
        assert rewards.shape == terminated.shape == truncated.shape == (4,) == (envs.num_envs,)
        assert np.shares_memory(observation["screens"], envs.screens)


@pytest.mark.parametrize(
    ("env_count", "workers", "words"), [(4, 5, "4 envs"), (4, 0, "1 or more"), (0, None, "1 or more")]
)
def test_impossible_numbers(env_count: int, workers: int | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        VectorEnv(env_count, workers)


def alive(processes: list[Any]) -> list[int]:
    return [process.pid for process in processes if psutil.pid_exists(process.pid)]


def test_closing_leaves_no_process_even_with_steps_in_flight() -> None:
    envs = VectorEnv(4, 2)
    envs.reset()
    envs.send(0, np.zeros(len(envs.groups[0]), np.uint8))
    processes = [psutil.Process(process.pid) for process in envs.processes]
    envs.close()
    assert not alive(processes)


def test_an_exception_leaves_no_process() -> None:
    with pytest.raises(ZeroDivisionError), VectorEnv(4, 2) as envs:
        processes = [psutil.Process(process.pid) for process in envs.processes]
        raise ZeroDivisionError
    assert not alive(processes)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux lets a process choose its cores")
def test_pinned_subprocesses_have_a_core_each_also_when_they_are_replaced() -> None:
    cores = allowed_cores()
    with VectorEnv(2 * len(cores), len(cores), pinned=True) as envs:
        envs.reset()
        envs.processes[0].kill()
        play_at_random(envs, 2)
        theirs = [os.sched_getaffinity(process.pid or 0) for process in envs.processes]
    assert set.union(*theirs) == cores and sum(map(len, theirs)) == len(cores)
    assert allowed_cores() == cores
    with VectorEnv(2, 1, pinned=True) as envs:
        assert len(cores) == 1 or os.sched_getaffinity(envs.processes[0].pid or 0) == cores
