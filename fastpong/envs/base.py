"""What every set of envs can do, however it is run; and envs in this process."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from fastpong.arrays import I8, I64, U8, Arrays
from fastpong.config import Config
from fastpong.envs.emulators import Emulators, state_layout
from fastpong.envs.memory import zeros
from fastpong.parallel.losses import Losses
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
    losses : Losses
        Subprocesses that were lost.
    """

    env_count: int
    env_offset: int
    groups: list[I64]
    rows: I64
    screens: U8
    rewards: I8
    ended: I8
    rotation: AbstractContextManager[None, None]
    losses: Losses

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
        self.losses = Losses()  # there are no subprocesses
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
        states = zeros(state_layout(self.env_count))
        self.emulators.save(states)
        return as_snapshot(states, self)

    def restore(self, arrays: Arrays) -> None:
        """See `Envs`."""
        self._actions = None
        states = zeros(state_layout(self.env_count))
        restore_snapshot(arrays, states, self)
        self.emulators.restore(states)


def as_snapshot(states: Arrays, envs: Envs) -> Arrays:
    """Return the snapshot of some envs; `states` are as `state_layout` says, in the rows of the envs."""
    emulators, sizes = (states[name][envs.rows] for name in ("emulators", "emulator_sizes"))
    parts = [state[:size].tobytes() for state, size in zip(emulators, sizes, strict=True)]
    return {
        **join_bytes(parts, "emulators", "emulator_sizes"),
        **{name: states[name][envs.rows] for name in ("steps", "last_actions")},
        **{name: getattr(envs, name)[envs.rows] for name in SHARED},
    }


def restore_snapshot(arrays: Arrays, states: Arrays, envs: Envs) -> None:
    """Write a snapshot into `states`, and into what the envs show."""
    for row, data in zip(envs.rows, split_bytes(arrays["emulators"], arrays["emulator_sizes"]), strict=True):
        states["emulators"][row, : len(data)] = np.frombuffer(data, np.uint8)
        states["emulator_sizes"][row] = len(data)
    for name in ("steps", "last_actions"):
        states[name][envs.rows] = arrays[name]
    for name in SHARED:
        getattr(envs, name)[envs.rows] = arrays[name]
