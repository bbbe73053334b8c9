"""What every set of envs can do, however it is run; and envs in this process."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastpong.arrays import I8, I64, U8, Arrays
from fastpong.config import Config
from fastpong.envs.emulators import RESET, RESTORE, Emulators, step_head
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.memory import SCREENS, saved_fields, zeros
from fastpong.envs.verify import usable
from fastpong.errors import EnvError
from fastpong.parallel.replaced import Losses
from fastpong.parallel.sharding import Layout, layout_of

COURTS = ("courts",)
"""All that a convolutional policy has to see."""


def images_of(config: Config) -> Sequence[str]:
    """Return the images that the policy of a run sees."""
    return COURTS if config.algorithm == "ppo" else SCREENS


def layout(config: Config) -> Layout:
    """Return how the arrays of a snapshot of a run are cut, see `fastpong.parallel.sharding`."""
    return layout_of(saved_fields(DEFAULT_ENGINE, images_of(config)))


class Envs(ABC):
    """Some envs of a run, in groups that are stepped separately: after a `reset`, `recv` and `send` in turn for each.

    Between `recv` and `send` what the arrays have of a group's envs holds still.

    Attributes
    ----------
    env_count, env_offset : int
        How many envs these are, and the global index of the first: it keys their noise. Everywhere else env n is the
        n-th of these.
    groups : list of int64 (n,)
        The envs of each group, ascending.
    engine : str
        What steps them.
    arrays : dict
        See `fastpong.envs.memory.fields`.
    rewards, ended
        Of these int8 (envs,) each.
    losses : Losses
        Subprocesses that were lost.
    """

    losses: Losses

    def _begin(self, envs: range, groups: list[I64], arrays: Arrays, seed: int, engine: str) -> None:
        self.env_count, self.env_offset, self.groups = len(envs), envs.start, groups
        self.arrays, self.engine = arrays, engine
        self._saved = [*saved_fields(engine, [*arrays])][1:]  # all but the steps
        self.rewards: I8 = arrays["rewards"]
        self.ended: I8 = arrays["ended"]
        self._seed, self._steps = seed, [0] * len(groups)  # steps of each group since the run began

    @property
    def screens(self) -> U8:
        """Palette indices, uint8 (envs, 210, 160). Raises `KeyError` if the envs were started without screens."""
        return self.arrays["screens"]

    def reset(self, *, seed: int | None = None) -> Any:
        """Start every game anew; with a seed, from that run seed, otherwise going on with the noise."""
        self._clear()
        if seed is not None:
            self._seed, self._steps = seed, [0] * len(self.groups)
        self._tell(RESET)

    @abstractmethod
    def send(self, group: int, actions: U8) -> None:
        """Step the envs of a group with these actions, uint8 (n,) in the order of ``groups[group]``."""

    @abstractmethod
    def close(self) -> None:
        """Stop the subprocesses, if there are any."""

    @abstractmethod
    def recv(self, group: int) -> None:
        """Wait until the group's step is done: then the arrays hold its images and outcomes."""

    def snapshot(self) -> Arrays:
        """State of all envs, after waiting for the steps in flight: arrays by name, in the order of envs.

        A `restore` of it, by envs with any number of groups and workers, continues bit for bit.
        """
        self._finish()
        steps = np.empty(self.env_count, np.int64)
        for members, taken in zip(self.groups, self._steps, strict=True):
            steps[members] = taken
        return {"steps": steps, **{name: self.arrays[name].copy() for name in self._saved}}

    def restore(self, arrays: Arrays) -> None:
        """Put all envs back to a `snapshot`; takes the place of `reset`. Raises `EnvError` if it is none."""
        self._clear()
        self._steps = [int(arrays["steps"][members[0]]) for members in self.groups]
        for name in self._saved:
            self.arrays[name][:] = arrays[name]
        self._tell(RESTORE)

    def _finish(self) -> None:
        for group in range(len(self.groups)):
            self.recv(group)

    def _clear(self) -> None:
        """Let no step be in flight, whatever it would bring: also after one that was interrupted."""
        self._finish()

    def _next_step(self, group: int, actions: U8) -> tuple[bytes, bytes]:
        """Count a step of a group; return the head of its message, and its actions."""
        head = step_head(group, self._steps[group], self._seed)
        self._steps[group] += 1
        return head, actions.tobytes()

    @abstractmethod
    def _tell(self, message: bytes) -> None:
        """Let all envs take a message, see `Emulators.take`, and wait for it."""


class LocalEnvs(Envs):
    """Some envs of a run in this process, in one group; arguments as for `VectorEnv`."""

    def __init__(
        self, envs: range = range(1), seed: int = 0, frame_skip: int = 4, repeat_action_probability: float = 0.25,
        images: Sequence[str] = SCREENS, engine: str = DEFAULT_ENGINE,
    ):  # fmt: skip
        engine = usable(engine)
        arrays = zeros(len(envs), engine, images)
        self._emulators = Emulators(envs, [range(len(envs))], frame_skip, repeat_action_probability, engine=engine)
        self._emulators.bind(arrays)
        self._begin(envs, [np.arange(len(envs))], arrays, seed, engine)
        self.losses = Losses()  # there are no subprocesses
        self._message = b""  # of a step that is still to be taken

    @classmethod
    def of(
        cls, config: Config, envs: range = range(1), engine: str = DEFAULT_ENGINE, images: Sequence[str] = ()
    ) -> "LocalEnvs":
        """Start some envs of a run, by default the first one, with its rules, and with the images that it sees."""
        rules = config.seed, config.frame_skip, config.repeat_action_probability
        return cls(envs, *rules, images or images_of(config), engine)

    def send(self, group: int, actions: U8) -> None:
        """See `Envs`: the step is taken when `recv` asks for it."""
        self._message = b"".join(self._next_step(group, actions))

    def recv(self, group: int) -> None:
        """See `Envs`."""
        message, self._message = self._message, b""
        if message:
            self._emulators.take(message)

    def close(self) -> None:
        """No-op: there are none."""

    def _tell(self, message: bytes) -> None:
        self._emulators.take(message)


def unfinished() -> EnvError:
    """Return the error for a step after one that did not end."""
    return EnvError("the last step did not end, it was interrupted or failed: call reset")
