"""Many games of Pong as one gymnasium vector environment, on the subprocesses and the shared memory of training."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from fastpong.arrays import F64, I64, U8, Bool
from fastpong.envs.base import Envs, unfinished
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import EnvError, UsageError
from fastpong.gym.observations import KINDS, Array
from fastpong.gym.options import check_options, checked_rules, checked_seed, games_seed
from fastpong.kernels.drawing import in_colour
from fastpong.pong import ACTION_SETS, ACTIONS, STAY, WINNING

MAX_GROUPS, GROUP = 4, 16
"""While one group of the envs is drawn, the others play, so that one is left for the end of a step; and how many envs
make a group worth its messages."""


class PongVectorEnv(gymnasium.vector.VectorEnv[Array, Array, Array]):
    """``gymnasium.make_vec("fastpong/Pong-v0", num_envs=64)``: the rules of ``ALE/Pong-v5``, `num_envs` games.

    `info` tells of each game that ends its ``score`` and ``steps``, and the ``opponent``'s points. By default the next
    step then begins another game and ignores the action; its reward is 0 (``AutoresetMode.NEXT_STEP``, as gymnasium's
    own envs). With ``SAME_STEP`` the step that ends a game returns the first observation of the next one, and the last
    of the game is in ``info["final_obs"]``, the rest of its info in ``info["final_info"]``.

    >>> envs = gymnasium.make_vec("fastpong/Pong-v0", num_envs=4, obs="stack84")
    >>> images, _ = envs.reset(seed=0)
    >>> images, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
    >>> images.shape, rewards.shape
    ((4, 4, 84, 84), (4,))
    >>> envs.close()

    Parameters
    ----------
    num_envs : int
        Games.
    obs : str
        What a learner sees, a word of `fastpong.gym.observations.KINDS`, whose classes say what each is. ``screen`` is
        uint8 (210, 160), palette indices.
    actions : int
        6: as ``ALE/Pong-v5``; 3: up, down, no-op; 2: up, down.
    frame_skip : int
        Frames a step.
    repeat_action_probability : float
        Probability at each frame that the previous action is repeated (sticky actions).
    copy : bool
        Whether each observation is an array of its own. Without, the next step writes into it.
    autoreset_mode : AutoresetMode or str
        ``NextStep`` or ``SameStep``.
    workers : int, optional
        Subprocesses; one per usable core by default.
    engine : str
        One of `fastpong.envs.engine.ENGINES`; it changes nothing but the speed.
    render_mode : str, optional
        ``rgb_array``: `render` returns the screens of all games.

    Raises
    ------
    UsageError
        For an impossible option, or actions of another shape or range.
    EnvError
        From a closed env, or when a subprocess failed.
    """

    metadata: dict[str, Any] = {
        "render_modes": ["rgb_array"], "render_fps": 15, "autoreset_mode": AutoresetMode.NEXT_STEP,
    }  # fmt: skip

    def __init__(
        self,
        num_envs: int = 1,
        *,
        obs: str = "screen",
        actions: int = 6,
        frame_skip: int = 4,
        repeat_action_probability: float = 0.25,
        copy: bool = True,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        workers: int | None = None,
        engine: str = DEFAULT_ENGINE,
        render_mode: str | None = None,
        **others: object,
    ):
        self.closed = True  # gymnasium 1.1 closes what was never made
        check_options(PongVectorEnv, others, obs, actions, render_mode)
        num_envs, frame_skip, probability = checked_rules(num_envs, frame_skip, repeat_action_probability)
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError:
            mode = AutoresetMode.DISABLED
        if mode == AutoresetMode.DISABLED:
            raise UsageError(f"autoreset_mode is 'NextStep' or 'SameStep', not {autoreset_mode!r}")
        self.metadata, self._same_step = {**self.metadata, "autoreset_mode": mode}, mode == AutoresetMode.SAME_STEP
        self.num_envs, self.render_mode = num_envs, render_mode
        kind = KINDS[obs]
        self._envs = self._start(workers, frame_skip, probability, kind.images, engine)
        self.closed = False
        self._observations = kind(self._envs.arrays, copy)
        self._choices = np.array(ACTION_SETS[actions], np.uint8)
        self.single_observation_space, self.observation_space = kind.space(), batch_space(kind.space(), num_envs)
        self.single_action_space = gymnasium.spaces.Discrete(actions)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._started = self._stepping = False
        self._scores = np.zeros((2, num_envs), np.int64)  # points won, and lost
        self._steps = np.zeros(num_envs, np.int64)
        self._over = np.zeros(num_envs, bool)  # games that ended and did not begin anew

    def _start(
        self, workers: int | None, frame_skip: int, probability: float, images: tuple[str, ...], engine: str
    ) -> Envs:  # fmt: skip
        """Start what steps the games."""
        groups = min(MAX_GROUPS, max(1, self.num_envs // GROUP))
        return VectorEnv(
            self.num_envs, workers, frame_skip=frame_skip, repeat_action_probability=probability,
            num_actions=len(ACTIONS), groups=groups, pinned=True, images=images, engine=engine,
        )  # fmt: skip

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin all games anew, with a seed from its sticky actions, else going on with the noise.

        Those of a game depend on the seed, its index and the number of steps. The first reset without a seed draws one.
        """
        self._check_open()
        seed = None if seed is None else checked_seed(seed)
        super().reset(seed=seed)
        if seed is None and not self._started:
            seed = int(self.np_random.integers(2**31))
        self._started = self._stepping = True
        self._envs.reset(seed=None if seed is None else games_seed(seed))
        self._scores[:], self._steps[:], self._over[:] = 0, 0, False
        everyone = np.arange(self.num_envs)
        self._observations.begin()
        self._observations.update(everyone, np.ones(self.num_envs, bool))
        self._stepping = False
        return self._observations.now, {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Step all games; `actions` is integer (num_envs,).

        Returns observations, rewards float64 (points won minus lost), terminations and truncations bool (all
        (num_envs,)), and info.
        """
        self._check_open()
        if not self._started:
            raise UsageError("reset comes before step")
        if self._stepping:
            raise unfinished()
        choices = self._checked(actions)
        self._stepping = True
        choices[self._over] = STAY
        envs, seen = self._envs, self._observations
        for group, members in enumerate(envs.groups):
            envs.send(group, choices[members])
        seen.begin()
        ended, infos = np.zeros(self.num_envs, bool), dict[str, Any]()
        fresh = ended if self._same_step else self._over
        for group, members in enumerate(envs.groups):  # the others still play
            envs.recv(group)
            ended[members] = over = envs.ended[members] != 0
            if over.any():
                infos = self._last_observations(members[over], infos)
                if not self._same_step:
                    members = members[~over]
            seen.update(members, fresh[members])
        rewards = envs.rewards.astype(np.float64)
        terminated, truncated, infos = self._count(rewards, ended, infos)
        self._stepping = False
        return seen.now, rewards, terminated, truncated, infos

    def _last_observations(self, members: I64, infos: dict[str, Any]) -> dict[str, Any]:
        """Give those games that have just ended their last observation, in `infos` if another one follows."""
        for env in members.tolist():
            last = self._observations.final(env)
            if self._same_step:
                infos = self._add_info(infos, {"final_obs": last}, env)
            else:
                self._observations.now[env] = last
        return infos

    def _count(self, rewards: F64, ended: Bool, infos: dict[str, Any]) -> tuple[Bool, Bool, dict[str, Any]]:
        """Count steps and points; return terminations, truncations, and infos with what is told of games that ended.

        Most steps have nothing to count: every call of NumPy that is saved there counts, see docs/performance.md.
        """
        self._steps += ~self._over
        if not self._same_step:
            self._over = ended
        if rewards.any():
            self._scores[0] += np.maximum(rewards, 0).astype(np.int64)
            self._scores[1] += np.maximum(-rewards, 0).astype(np.int64)
        truncated = np.zeros(self.num_envs, bool)
        if ended.any():
            for env in np.flatnonzero(ended).tolist():
                won, lost = self._scores[:, env].tolist()
                truncated[env] = max(won, lost) < WINNING
                facts = {"score": won, "opponent": lost, "steps": int(self._steps[env])}
                infos = self._add_info(infos, {"final_info": facts} if self._same_step else facts, env)
            self._scores[:, ended], self._steps[ended] = 0, 0
        return ended & ~truncated, truncated, infos

    def render(self) -> tuple[U8, ...]:
        """Return the screens of all games, each uint8 (210, 160, 3), if the render mode is ``rgb_array``."""
        self._check_open()
        if self.render_mode is None:
            raise UsageError("render wants an env that was made with render_mode='rgb_array'")
        return tuple(in_colour(self.screens()))

    def screens(self) -> U8:
        """Return what was last seen of all games, uint8 (num_envs, 210, 160): of those that are over, the last one."""
        screens, last = self._envs.screens, self._envs.arrays["final_screens"]
        return np.where(self._over[:, None, None], last, screens) if self._over.any() else screens

    def get_action_meanings(self) -> list[str]:
        """Return ALE's names of the actions."""
        return [ACTIONS[choice] for choice in self._choices]

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the subprocesses."""
        self._envs.close()

    def _checked(self, actions: Any) -> U8:
        """Return actions as indices into `fastpong.pong.ACTIONS`."""
        array = np.asarray(actions)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise UsageError(
                f"actions are integers, one for each of the {self.num_envs} games, not {array.dtype} {array.shape}"
            )
        if array.view(f"u{array.itemsize}").max() >= len(self._choices):  # negative numbers are large ones there
            raise UsageError(f"an action is 0 … {len(self._choices) - 1}, not {array.min()} … {array.max()}")
        choices: U8 = self._choices[array]
        return choices

    def _check_open(self) -> None:
        if self.closed:
            raise EnvError("this env is closed: make a new one")
