"""Compiling on two cores: with an empty cache a subprocess compiles the kernels that learn, while others already act.

Numba compiles one kernel at a time in a process, whatever its number of threads. Kernels are compiled, or loaded from
the cache, when they are called: a spare agent with one env acts on a blank screen, and learns from nothing.
"""

import contextlib
import json
import select
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from fastpong.config import Config
from fastpong.envs.base import images_of
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.memory import zeros
from fastpong.envs.verify import is_verified, load_early
from fastpong.kernels.compile.cache import remove_old_folders
from fastpong.kernels.compile.jit import is_cached
from fastpong.kernels.preprocess import observe
from fastpong.learners.base import LEARNERS, make_learner
from fastpong.parallel.comm import Communicator, Serial
from fastpong.parallel.machine import LEFT, end_with_parent, usable_cores
from fastpong.policy import make_policy
from fastpong.rollout.episode_stats import EpisodeStats

COMPILE_SECONDS = 120.0
"""How long a subprocess that compiles is waited for."""

_LEFT: list[subprocess.Popen[bytes]] = []  # of runs that have ended: Python warns if one is forgotten


def load_acting(config: Config) -> None:
    """Compile the kernels of a policy that acts, or load them from the cache."""
    policy = make_policy(_spare(config))
    rollout, one = policy.make_rollout(1), np.zeros(1, np.int64)
    row = rollout.new_row()
    rollout.record(row, observe(zeros(1, DEFAULT_ENGINE, images_of(config))), one, one)
    policy.act(rollout.inputs, row, one, 0)


def load_learning(config: Config, ranks: int = 1) -> None:
    """Compile the kernels of a learner of so many ranks, or load them from the cache."""
    policy = make_policy(_spare(config))
    learner = make_learner(_spare(config), policy, Serial(ranks))
    rollout, stats = policy.make_rollout(1), EpisodeStats(1, 0.0)
    for _ in range(rollout.history + 2):
        rollout.new_row()
    learner.learn(rollout, stats)
    learner.close()


class Compiling:
    """What a run of so many ranks needs compiled: compiled, or loaded from the cache.

    With an empty cache subprocesses begin at once with the kernels that learn and with the console, if there is a core
    for them, while this process compiles the kernels that act. `busy` is told what is waited for.
    """

    def __init__(
        self, config: Config, ranks: int = 1, engine: str = "ale", busy: Callable[[str], object] = lambda text: None
    ):
        remove_old_folders()
        self._config, self._ranks, self._busy = config, ranks, busy
        self._cached = all(is_cached(kernel) for kernel in LEARNERS[config.algorithm].SLOW_KERNELS)
        alone = ranks > 1 or usable_cores() < 2
        learning = ["fastpong.training.warm_up", json.dumps(asdict(config))]
        self._learning = None if alone or self._cached else _start(learning)
        self._verifying = None if alone or engine == "ale" or is_verified() else _start(["fastpong.envs.verify"])

    @property
    def apart(self) -> bool:
        """Whether a subprocess compiles the kernels that learn."""
        return self._learning is not None

    def load(self) -> None:
        """Load the kernels that act, and those that learn if they have to be compiled and no subprocess does it.

        Then the console is compiled as well, or else its first user does it.
        """
        self._busy("loading the kernels" if self._cached else "compiling the kernels, once")
        load_acting(self._config)
        if not self.apart and (self._ranks > 1 or not self._cached):
            load_learning(self._config, self._ranks)
        self._wait(self._verifying, "the console")

    def wait(self) -> None:
        """Wait until the first batch can be learned from: if the subprocess has failed, this process compiles."""
        self._wait(self._learning, "the kernels that learn")

    def _wait(self, one: "subprocess.Popen[bytes] | None", what: str) -> None:
        if one and one.stdout and not one.stdout.closed:
            if not select.select([one.stdout], [], [], 0.0)[0]:
                self._busy(f"compiling {what}, once")
                select.select([one.stdout], [], [], COMPILE_SECONDS)
            one.stdout.close()

    def close(self) -> None:
        """Wait for nothing: subprocesses fill the cache and end by themselves."""
        for one in (self._learning, self._verifying):
            if one:
                _leave(one)


def compiled(config: Config, comm: Communicator, engine: str, busy: Callable[[str], object]) -> Compiling:
    """Load what acts and the console, on rank 0 first: it fills the cache, which is safe, but slow, to fill twice.

    `busy` is told what is done.
    """
    if comm.rank:
        comm.barrier()
    compiling = Compiling(config, comm.size, engine, busy)
    load_early(engine)
    compiling.load()
    if not comm.rank:
        comm.barrier()
    return compiling


def _start(module: list[str]) -> "subprocess.Popen[bytes]":
    """Start a subprocess that compiles: it writes a line, or ends, as soon as others can go on."""
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", *module]  # -P: no files of the current directory
    # In a session of its own, ctrl-C does not end it: its work would have to be done again.
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True)


def _leave(one: "subprocess.Popen[bytes]") -> None:
    """Let a subprocess go on without this process: see `end_with_parent`."""
    assert one.stdin and one.stdout
    with contextlib.suppress(BrokenPipeError):  # it has ended
        one.stdin.write(LEFT)
        one.stdin.close()
    one.stdout.close()
    _LEFT[:] = [other for other in (*_LEFT, one) if other.poll() is None]


def _spare(config: Config) -> Config:
    return replace(config, num_envs=1, batch_size=1)


if __name__ == "__main__":
    end_with_parent()
    with contextlib.suppress(BrokenPipeError):  # nobody waits any more: the cache is filled all the same
        load_learning(Config(**json.loads(sys.argv[1])))
        print("the first batch can be learned from", flush=True)
