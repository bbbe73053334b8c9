"""Several envs in one process: an engine steps them as messages say. Here is what no engine owns: groups and noise.

A message has all that the envs do not have in their rows: the run's seed, the number of the step, and the actions. So
who reads it has no state of its own, and to send it once more, after the rows were put back, changes nothing.
"""

import struct
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from fastpong.arrays import U8, Arrays
from fastpong.envs.engine import DEFAULT_ENGINE, Engine, check_engine
from fastpong.envs.memory import SCREENS, fields
from fastpong.envs.sticky import sticky_repeats

_STEP = struct.Struct("<Bqq")  # group, step, seed; after it comes a byte for the action of each env

RESET, RESTORE = b"\xfe", b"\xff"
"""Messages that tell all envs to begin anew, and to go on from their rows."""

MAX_GROUPS = 254
"""A message that steps a group begins with the group's number, one byte."""

_NOISE_BLOCK = 64  # steps of sticky noise drawn in one NumPy call, to make it cost next to nothing


def step_head(group: int, step: int, seed: int) -> bytes:
    """Return the message that steps a group, up to the actions: uint8, indices into ``pong.ACTIONS``, or `STAY`."""
    return _STEP.pack(group, step, seed)


def make_engine(name: str, arrays: Arrays, frame_skip: int) -> Engine:
    """Return an engine on these arrays, see `fastpong.envs.memory.fields`; only then is it loaded."""
    if check_engine(name) == "ale":
        from fastpong.envs.ale import Ale

        return Ale(arrays, frame_skip)
    from fastpong.envs.console import Console

    return Console(arrays, frame_skip)


class Emulators(gymnasium.Env[Any, Any]):
    """Some consecutive envs of a run, in groups that are stepped separately.

    To gymnasium it is one env, of which it learns the spaces; it is stepped by `take` alone.

    Parameters
    ----------
    envs : range
        Global indices of the envs; they key the noise.
    groups : sequence of range
        The envs of each group, counted from the first of these.
    frame_skip : int
        Frames a step.
    repeat_action_probability : float
        Probability at each frame that the previous action is repeated.
    num_actions : int
        2 (up, down), 3 (no-op as well) or 6.
    engine : str
        One of `fastpong.envs.engine.ENGINES`.
    images : sequence of str
        Those of `fastpong.envs.engine.IMAGES` that are in the arrays.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        envs: range,
        groups: Sequence[range],
        frame_skip: int = 4,
        repeat_action_probability: float = 0.25,
        num_actions: int = 2,
        engine: str = DEFAULT_ENGINE,
        images: Sequence[str] = SCREENS,
    ):
        self._env_ids, self._groups = np.arange(envs.start, envs.stop), groups
        self._frame_skip, self._repeat_action_probability = frame_skip, repeat_action_probability
        self._engine_name = engine
        self._noise: list[tuple[Any, U8]] = [(None, np.empty((0, 0), np.uint8))] * len(groups)
        box, table = gymnasium.spaces.Box, fields(engine, images)
        shown = {}
        for name in images:
            kind, size = table[name].dtype, [int(axis) for axis in table[name].shape[1:]]
            shown[name] = box(0, np.iinfo(kind).max, size, kind)
        outcomes = {"rewards": box(-21, 21, (), np.int8), "ended": box(0, 1, (), np.int8)}
        self.observation_space = gymnasium.spaces.Dict({**shown, **outcomes})
        self.action_space = gymnasium.spaces.Discrete(num_actions)

    def bind(self, arrays: Arrays) -> None:
        """Start the engine, which steps in these arrays from now on."""
        self._arrays, self._engine = arrays, make_engine(self._engine_name, arrays, self._frame_skip)

    def take(self, message: bytes) -> None:
        """Do what a message says: `RESET`, `RESTORE`, or a step, see `step_head`."""
        if message[:1] == RESET:
            self._engine.reset(range(len(self._env_ids)))
            self._arrays["rewards"][:], self._arrays["ended"][:] = 0, 1
        elif message[:1] == RESTORE:
            self._engine.restore()
        else:
            group, step, seed = _STEP.unpack_from(message)
            envs = self._groups[group]
            actions = np.frombuffer(message, np.uint8, len(envs), _STEP.size)
            self._engine.step(envs, actions, self._repeats(group, step, seed))

    def _repeats(self, group: int, step: int, seed: int) -> U8:
        """For how many frames each env of a group repeats its last action in a step: uint8 (n,)."""
        block, place = divmod(step, _NOISE_BLOCK)
        known, repeats = self._noise[group]
        if known != (block, seed):
            envs = self._groups[group]
            repeats = sticky_repeats(
                seed, self._env_ids[envs.start : envs.stop], block * _NOISE_BLOCK, _NOISE_BLOCK, self._frame_skip,
                self._repeat_action_probability,
            )  # fmt: skip
            self._noise[group] = (block, seed), repeats
        return repeats[place]  # type: ignore[no-any-return]
