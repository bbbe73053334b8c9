"""What is closed is given back, and what is dropped is collected: descriptors, memory, subprocesses, finalizers."""

import gc
import multiprocessing.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest

import fastpong
import fastpong.gym  # noqa: F401
from fastpong.envs.memory import SharedArrays
from fastpong.envs.vector_env import VectorEnv
from fastpong.parallel.sharding import Field
from tests.support.envs import play_at_random

GAMES = 64


def held() -> dict[str, int]:
    """Count what this process has, after what nobody has any more was collected."""
    gc.collect()
    maps = Path("/proc/self/maps").read_text().splitlines()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "shared maps": sum("memfd:" in line for line in maps),
        "finalizers": len(vars(multiprocessing.util)["_finalizer_registry"]),
        "subprocesses": len(psutil.Process().children(recursive=True)),
    }


def make() -> Any:
    envs = gymnasium.make_vec("fastpong/Pong-v0", num_envs=GAMES, obs="rgb", workers=2)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    return envs


def closed(tmp_path: Path) -> None:
    make().close()


def dropped(tmp_path: Path) -> None:
    make()


def replaced(tmp_path: Path) -> None:
    with VectorEnv(4, 2) as envs:
        envs.reset()
        envs.processes[0].kill()
        play_at_random(envs, 2)


def evaluated(tmp_path: Path) -> None:
    fastpong.evaluate(games=1, workers=1)


def trained(tmp_path: Path) -> None:
    number = len([*tmp_path.iterdir()])
    fastpong.train(
        envs=4, steps=200, run=tmp_path / f"{number}", batch_size=64, minibatch_size=64, eval_games=0, workers=2
    )


def shared(tmp_path: Path) -> None:
    SharedArrays(4, {"bytes": Field(np.uint8, ("envs",))})


@pytest.mark.parametrize("use", [closed, dropped, replaced, evaluated, trained, shared])
def test_nothing_grows(use: Callable[[Path], None], tmp_path: Path) -> None:
    use(tmp_path)  # the first use loads, and starts the fork server
    before = held()
    for _ in range(2):
        use(tmp_path)
    assert held() == before
