"""What every set of envs can do, however it is run; and envs in this process."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from fastpong.arrays import I8, I64, U8, Arrays
from fastpong.config import Config
from fastpong.envs.emulators import Emulators
from fastpong.parallel.sharding import Layout, join_bytes, split_bytes

LAYOUT: Layout = {
    "steps": 0, "last_actions": 0, "emulators": "emulator_sizes", "emulator_sizes": 0,
    "screens": 0, "rewards": 0, "ended": 0,
}  # fmt: skip
"""Of the arrays of a snapshot, see `fastpong.parallel.sharding`."""

SHARED = ("screens", "rewards", "ended")


class Envs(Protocol):
    """Some envs of a run, in groups that are stepped separately: after a `reset`, `recv` and `send` in turn for each.

    Between `recv` and `send` the group's rows of the arrays hold still.

    Attributes
    ----------
    env_count, env_offset : int
        How many envs these are, and the global index of the first: it keys their noise. Everywhere else env n is the
        n-th of these.
    groups : list of int64 (n,)
        The envs of each group, ascending.
    rows : int64 (envs,)
        The row of each env in the arrays.
    screens, rewards, ended
        uint8 (rows, 210, 160) and twice int8 (rows,): see `fastpong.envs.emulators.observation_space`.
    rotation : context manager
        To be entered for each step of all envs: see `CoreRotation`.
    """

    env_count: int
    env_offset: int
    groups: list[I64]
    rows: I64
    screens: U8
    rewards: I8
    ended: I8
    rotation: AbstractContextManager[None, None]

    def reset(self) -> Any:
        """Start every game anew."""

    def send(self, group: int, actions: U8) -> None:
        """Step the envs of a group with these actions, uint8 (n,) in the order of ``groups[group]``."""

    def recv(self, group: int) -> None:
        """Wait until the group's step is done: then its rows hold the screens and the step's outcome."""

    def snapshot(self) -> Arrays:
        """State of all envs, after waiting for the steps in flight: arrays by name, in the order of envs."""

    def restore(self, arrays: Arrays) -> None:
        """Put all envs back to a `snapshot`; takes the place of `reset`."""


class LocalEnvs:
    """Some envs of a run (by default the first one) in this process, in one group. See `Envs`.

    `before` are envs that are not used any more: as many as these give them their emulators.
    """

    def __init__(self, config: Config, envs: range = range(1), before: "LocalEnvs | None" = None):
        self.env_count, self.env_offset = len(envs), envs.start
        rules = config.seed, config.frame_skip, config.repeat_action_probability, config.num_actions
        pool = before.emulators.pool if before else None
        self.emulators: Emulators = Emulators(envs, *rules, pool=pool)
        self.groups, self.rows = [np.arange(len(envs))], np.arange(len(envs))
        self.rotation: AbstractContextManager[None, None] = nullcontext()
        self._actions: list[int] | None = None  # of a step that is still to be taken
        arrays, _ = self.emulators.reset()
        self.screens, self.rewards, self.ended = (arrays[name] for name in SHARED)

    def reset(self) -> None:
        """See `Envs`."""
        self.recv(0)
        self.emulators.reset()

    def send(self, group: int, actions: U8) -> None:
        """See `Envs`: the step is taken when `recv` asks for it."""
        self._actions = actions.tolist()

    def recv(self, group: int) -> None:
        """See `Envs`."""
        if self._actions is not None:
            self.emulators.step_group(group, self._actions)
            self._actions = None

    def snapshot(self) -> Arrays:
        """See `Envs`."""
        self.recv(0)
        return as_arrays(self.emulators.snapshot(), self)

    def restore(self, arrays: Arrays) -> None:
        """See `Envs`."""
        self._actions = None
        self.emulators.restore({self.env_offset + env: state for env, state in enumerate(as_states(arrays))})
        for name in SHARED:
            getattr(self, name)[:] = arrays[name]


def as_arrays(states: list[tuple[int, int, int, bytes]], envs: Envs) -> Arrays:
    """Write what `Emulators.snapshot` tells of all envs as arrays, with what `envs` shows of them."""
    _, steps, last_actions, emulators = zip(*states, strict=True)
    return {
        "steps": np.array(steps, np.int64),
        "last_actions": np.array(last_actions, np.uint8),
        **join_bytes(emulators, "emulators", "emulator_sizes"),
        **{name: getattr(envs, name)[envs.rows] for name in SHARED},
    }


def as_states(arrays: Arrays) -> list[tuple[int, int, bytes]]:
    """Return for each env what `Emulators.restore` takes."""
    emulators = split_bytes(arrays["emulators"], arrays["emulator_sizes"])
    return list(zip(arrays["steps"].tolist(), arrays["last_actions"].tolist(), emulators, strict=True))
