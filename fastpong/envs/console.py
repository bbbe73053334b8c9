"""The engine that is fast: `fastpong.console`, with the bits of ALE."""

from typing import ClassVar

from fastpong.arrays import U8, Arrays
from fastpong.console.games import Games
from fastpong.envs.engine import IMAGES, STATE_BYTES


class Console:
    """See `Engine`. A row is a state of a console, in which every number is brought into its range before a step."""

    name: ClassVar[str] = "console"
    state_bytes: ClassVar[int] = STATE_BYTES["console"]

    def __init__(self, arrays: Arrays, frame_skip: int):
        screens, courts, final, earlier = (arrays.get(name) for name in IMAGES)
        outcomes = arrays["rewards"], arrays["ended"]
        self._games = Games(arrays["rows"], *outcomes, screens, courts, final, earlier, frame_skip)

    def reset(self, envs: range) -> None:
        """See `Engine`."""
        self._games.reset(envs)

    def step(self, envs: range, actions: U8, repeats: U8) -> None:
        """See `Engine`."""
        self._games.step(envs, actions, repeats)

    def ram(self, env: int) -> U8:
        """See `Engine`."""
        return self._games.ram(env)

    def restore(self) -> None:
        """See `Engine`: no bytes do harm."""
        self._games.restore()
