"""One game of Pong as a gymnasium environment, in this process."""

from typing import Any

import gymnasium
import numpy as np

from fastpong.arrays import U8
from fastpong.envs.base import LocalEnvs, unfinished
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.errors import EnvError, UsageError
from fastpong.gym.observations import KINDS, Array
from fastpong.gym.options import check_options, checked_rules, checked_seed, games_seed
from fastpong.kernels.drawing import in_colour, in_grey
from fastpong.pong import ACTION_SETS, ACTIONS, WINNING


class PongEnv(gymnasium.Env[Array, np.int64]):
    """``gymnasium.make("fastpong/Pong-v0")``: one game; options and errors are those of `PongVectorEnv`.

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
        kind, self.render_mode = KINDS[obs], render_mode
        _, self._frameskip, probability = checked_rules(1, frame_skip, repeat_action_probability)
        self._envs = LocalEnvs(range(1), 0, self._frameskip, probability, extras=kind.extras, engine=engine)
        self._observations = kind(self._envs.arrays)
        self._choices = np.array(ACTION_SETS[actions], np.uint8)
        self.observation_space, self.action_space = kind.space(), gymnasium.spaces.Discrete(actions)
        self._closed, self._playing, self._started, self._stepping = False, False, False, False
        self._score = [0, 0]
        self._shown = self._envs.screens[0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin a game, with a seed from its sticky actions, else going on with the noise."""
        self._check_open()
        seed = None if seed is None else checked_seed(seed)
        super().reset(seed=seed)
        if seed is None and not self._started:
            seed = int(self.np_random.integers(2**31))
        self._stepping = True
        self._envs.reset(seed=None if seed is None else games_seed(seed))
        self._started, self._playing, self._score = True, True, [0, 0]
        self._shown = self._envs.screens[0]
        self._observations.begin()
        self._observations.update(np.zeros(1, np.int64), np.ones(1, bool))
        self._stepping = False
        return self._observations.now[0], {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take a step; `action` is an integer."""
        self._check_open()
        if self._stepping:
            raise unfinished()
        if not self._playing:
            raise UsageError("reset comes before step, at first and after the end of a game")
        if not self.action_space.contains(action):
            raise UsageError(f"an action is an integer, 0 … {len(self._choices) - 1}, not {action!r}")
        self._stepping = True
        self._observations.begin()
        self._envs.send(0, self._choices[[int(action)]])
        self._envs.recv(0)
        reward, ended = int(self._envs.rewards[0]), bool(self._envs.ended[0])
        self._score[reward < 0] += abs(reward)
        info: dict[str, Any] = {}
        if ended:
            self._playing, self._shown = False, self._envs.arrays["final_screens"][0]
            info = {"score": self._score[0], "opponent": self._score[1]}
            observation = self._observations.final(0)
        else:
            self._observations.update(np.zeros(1, np.int64), np.zeros(1, bool))
            observation = self._observations.now[0]
        terminated = ended and max(self._score) >= WINNING
        self._stepping = False
        return observation, float(reward), terminated, ended and not terminated, info

    def render(self) -> U8:
        """Return the screen, uint8 (210, 160, 3), if the render mode is ``rgb_array``."""
        self._check_open()
        if self.render_mode is None:
            raise UsageError("render wants an env that was made with render_mode='rgb_array'")
        return in_colour(self._shown[None])[0]  # type: ignore[no-any-return]

    @property
    def ale(self) -> "Screens":
        """What gymnasium's `AtariPreprocessing` asks of ALE."""
        return Screens(self._shown)

    def get_action_meanings(self) -> list[str]:
        """Return ALE's names of the actions."""
        return [ACTIONS[choice] for choice in self._choices]

    def close(self) -> None:
        """Let go of the emulator."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise EnvError("this env is closed: make a new one")


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
