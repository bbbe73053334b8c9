"""One game of Pong as a gymnasium environment, in this process."""

from typing import Any

import gymnasium
import numpy as np

from fastpong.arrays import U8
from fastpong.envs.base import Envs, LocalEnvs
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.errors import UsageError
from fastpong.gym.observations import Array
from fastpong.gym.options import check_options, checked_seed
from fastpong.gym.vector import PongVectorEnv
from fastpong.kernels.drawing import in_colour, in_grey


class PongEnv(gymnasium.Env[Array, np.int64]):
    """``gymnasium.make("fastpong/Pong-v0")``: one game; options, info and errors are those of `PongVectorEnv`.

    >>> env = gymnasium.make("fastpong/Pong-v0", obs="court")
    >>> court, _ = env.reset(seed=0)
    >>> court.shape
    (160, 80)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}

    def __init__(
        self,
        *,
        obs: str = "screen",
        actions: int = 6,
        frame_skip: int = 4,
        repeat_action_probability: float = 0.25,
        engine: str = DEFAULT_ENGINE,
        render_mode: str | None = None,
        **others: object,
    ):
        check_options(PongEnv, others, obs, actions, render_mode)
        self._game = _Game(
            1, obs=obs, actions=actions, frame_skip=frame_skip, repeat_action_probability=repeat_action_probability,
            engine=engine, render_mode=render_mode,
        )  # fmt: skip
        self.render_mode, self._frameskip = render_mode, frame_skip  # the latter is what `AtariPreprocessing` looks at
        self.observation_space = self._game.single_observation_space
        self.action_space = self._game.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin a game, with a seed from its sticky actions, else going on with the noise."""
        super().reset(seed=None if seed is None else checked_seed(seed))
        seen, info = self._game.reset(seed=seed)
        return seen[0], info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take a step; `action` is an integer."""
        if not self._game.is_on():
            raise UsageError("reset comes before step, at first and after the end of a game")
        if not self.action_space.contains(action):
            raise UsageError(f"an action is an integer, 0 … {len(self.get_action_meanings()) - 1}, not {action!r}")
        seen, rewards, terminated, truncated, infos = self._game.step(np.array([action]))
        info = {name: int(infos[name][0]) for name in infos if not name.startswith("_")}
        return seen[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> U8:
        """Return the screen, uint8 (210, 160, 3), if the render mode is ``rgb_array``."""
        return self._game.render()[0]

    @property
    def ale(self) -> "Screens":
        """What gymnasium's `AtariPreprocessing` asks of ALE."""
        return Screens(self._game.screens()[0])

    def get_action_meanings(self) -> list[str]:
        """Return ALE's names of the actions."""
        return self._game.get_action_meanings()

    def close(self) -> None:
        """Let go of the emulator."""
        self._game.close()


class _Game(PongVectorEnv):
    """A game in this process, and not in a subprocess."""

    def _start(
        self, workers: int | None, frame_skip: int, probability: float, images: tuple[str, ...], engine: str
    ) -> Envs:  # fmt: skip
        return LocalEnvs(range(1), 0, frame_skip, probability, images, engine)

    def is_on(self) -> bool:
        """Whether it has begun, and is not over."""
        return self._started and not self._over[0]


class Screens:
    """A screen, uint8 (210, 160) palette indices, with the names of ale-py's `ALEInterface`."""

    def __init__(self, screen: U8):
        self._screen = screen

    def lives(self) -> int:
        """Return 0: Pong has none."""
        return 0

    def getScreenRGB(self, image: U8) -> None:  # noqa: N802
        """Draw it into an image, uint8 (210, 160, 3)."""
        image[:] = in_colour(self._screen[None])[0]

    def getScreenGrayscale(self, image: U8) -> None:  # noqa: N802
        """Draw it into an image, uint8 (210, 160)."""
        image[:] = in_grey(self._screen)
