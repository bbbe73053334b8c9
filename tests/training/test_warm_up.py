"""With an empty cache a subprocess compiles the kernels that learn; and bits do not depend on the processor's model."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from llvmlite import binding

SCRIPT = """
import zlib
from fastpong.config import make_config
from fastpong.envs.vector_env import VectorEnv
from fastpong.kernels import epochs
from fastpong.training.actor import Actor
from fastpong.training.warm_up import Compiling
from fastpong.training.trainer import Trainer

if __name__ == "__main__":
    changes = {"num_envs": 2, "batch_size": 128, "minibatch_size": 64, "update_epochs": 2}
    config = make_config("fast", changes)
    with VectorEnv.of(config, 1, engine="ale") as envs:
        compiling = Compiling(config)
        trainer = Trainer(config, Actor(config, envs), compiling=compiling)
        trainer.start()
        compiling.load()
        while not trainer.learn_if_due():
            trainer.step()
        stats = epochs.learn_minibatches.stats
        print(compiling.apart, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
        print(*(zlib.crc32(array.tobytes()) for array in trainer.state().values()))
"""


def first_update(script: Path, **environment: str) -> tuple[str, str]:
    """Return how the kernels of the first update came, and checksums of the state after it."""
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    kernels, state = done.stdout.splitlines()
    return kernels, state


@pytest.fixture(scope="module")
def updates(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """The first update with an empty cache, once more, and with the kernels of the other tests.

    LLVM orders what it may by a model's vectors and latencies. The first two are compiled for the plainest model, if
    this processor can run that; the last one for its own.
    """
    folder = tmp_path_factory.mktemp("kernels")
    script = folder / "first_update.py"
    script.write_text(SCRIPT)
    features = binding.get_host_cpu_features()
    plain = all(features.get(name) for name in ("avx2", "fma", "bmi2", "f16c", "movbe"))
    model = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""} if plain else {}
    empty = {"NUMBA_CACHE_DIR": str(folder / "cache"), **model}
    return [first_update(script, **empty), first_update(script, **empty), first_update(script)]


def test_kernels_that_learn_are_compiled_apart_once(updates: list[tuple[str, str]]) -> None:
    if len(os.sched_getaffinity(0)) > 1:  # else there is no core for a subprocess
        assert updates[0][0] == "True 1 0"
    assert updates[1][0] == "False 1 0"


def test_bits_depend_neither_on_the_cache_nor_on_the_processors_model(updates: list[tuple[str, str]]) -> None:
    assert updates[0][1] == updates[1][1] == updates[2][1]
    assert len(set(updates[0][1].split())) > 20


KILLED = """
import json, os, signal
from dataclasses import asdict
from fastpong.config import make_config
from fastpong.training.warm_up import _start
print(_start(["fastpong.training.warm_up", json.dumps(asdict(make_config()))]).pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_compiles_ends_when_its_run_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, env=environment)
    compiling = int(done.stdout)
    assert not psutil.pid_exists(compiling) or not psutil.wait_procs([psutil.Process(compiling)], timeout=20)[1]
