"""Compiling on two cores: with an empty cache a subprocess compiles the kernels that learn, while others already act.

Numba compiles one kernel at a time in a process, whatever its number of threads. Kernels are compiled, or loaded from
the cache, when they are called: a spare agent with one env acts on a blank screen, and learns from nothing.
"""

import contextlib
import json
import select
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np

from fastpong.config import Config
from fastpong.kernels.compile.cache import remove_old_folders
from fastpong.kernels.compile.jit import is_cached
from fastpong.kernels.preprocess import Observation, as_words
from fastpong.learners.base import LEARNERS, make_learner
from fastpong.parallel.comm import Serial
from fastpong.parallel.machine import usable_cores
from fastpong.policy import make_policy
from fastpong.pong import SCREEN
from fastpong.rollout.episode_stats import EpisodeStats

COMPILE_SECONDS = 120.0
"""How long the first update waits for the subprocess that compiles its kernels."""

_LEFT: list[subprocess.Popen[bytes]] = []  # of runs that have ended: Python warns if one is forgotten


def load_acting(config: Config) -> None:
    """Compile the kernels of a policy that acts, or load them from the cache."""
    policy = make_policy(_spare(config))
    rollout, one, zero = policy.make_rollout(1), np.zeros(1, np.int64), np.zeros(1, np.int8)
    row = rollout.new_row()
    rollout.record(row, Observation(as_words(np.zeros((1, *SCREEN), np.uint8)), zero, zero), one, one)
    policy.act(rollout.inputs, row, one, 0)


def load_learning(config: Config, ranks: int = 1, late: bool = True) -> None:
    """Compile the kernels of a learner of so many ranks, or load them from the cache; `late`: also the late ones."""
    policy = make_policy(_spare(config))
    learner = make_learner(_spare(config), policy, Serial(ranks))
    rollout, stats = policy.make_rollout(1), EpisodeStats(1, 0.0)
    if late:
        learner.begin_late_phase(0)
    for _ in range(1 + late):  # the second batch is learned from with the critic's values
        for _ in range(rollout.history + 2):
            rollout.new_row()
        learner.learn(rollout, stats)
    learner.close()


class Compiling:
    """The kernels of a run of so many ranks: compiled, or loaded from the cache.

    With an empty cache a subprocess begins at once to compile those that learn, if there is a core for it.
    """

    def __init__(self, config: Config, ranks: int = 1):
        remove_old_folders()
        self._config, self._ranks = config, ranks
        self._cached = all(is_cached(kernel) for kernel in LEARNERS[config.algorithm].SLOW_KERNELS)
        alone = self._cached or ranks > 1 or usable_cores() < 2
        self._subprocess = None if alone else _compile_apart(config)

    @property
    def apart(self) -> bool:
        """Whether a subprocess compiles."""
        return self._subprocess is not None

    def load(self) -> None:
        """Load the kernels that act, and those that learn if they have to be compiled and no subprocess does it."""
        load_acting(self._config)
        if not self.apart and (self._ranks > 1 or not self._cached):
            load_learning(self._config, self._ranks)

    def wait(self) -> None:
        """Wait until the first batch can be learned from: if the subprocess has failed, this process compiles."""
        if self._subprocess and self._subprocess.stdout and not self._subprocess.stdout.closed:
            select.select([self._subprocess.stdout], [], [], COMPILE_SECONDS)
            self._subprocess.stdout.close()

    def close(self) -> None:
        """Wait for nothing: the subprocess fills the cache and ends by itself."""
        if self._subprocess and self._subprocess.stdout:
            self._subprocess.stdout.close()
            _LEFT[:] = [one for one in [*_LEFT, self._subprocess] if one.poll() is None]


def _compile_apart(config: Config) -> "subprocess.Popen[bytes]":
    """Start the subprocess: it writes a line as soon as the first batch can be learned from, and goes on."""
    command = [sys.executable, "-m", "fastpong.training.kernels", json.dumps(asdict(config))]
    nowhere = subprocess.DEVNULL
    # In a session of its own, ctrl-C does not end it: its work would have to be done again.
    return subprocess.Popen(command, stdin=nowhere, stdout=subprocess.PIPE, stderr=nowhere, start_new_session=True)


def _spare(config: Config) -> Config:
    return replace(config, num_envs=1, batch_size=1, critic_replay_batches=min(1, config.critic_replay_batches))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # nobody waits any more: the cache is filled all the same
        load_learning(Config(**json.loads(sys.argv[1])), late=False)
        print("the first batch can be learned from", flush=True)
    load_learning(Config(**json.loads(sys.argv[1])))
