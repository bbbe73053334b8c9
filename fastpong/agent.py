"""A trained agent that plays in anybody's environment: screens in, actions out."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong import dense
from fastpong.arrays import F32, I64, U8, Arrays, Bool
from fastpong.config import Config, changed
from fastpong.courts import IS_SET
from fastpong.errors import UsageError
from fastpong.policy import checked_weights
from fastpong.pong import ACTION_SETS, BACKGROUND_RED, COURT, COURT_TOP, SCREEN
from fastpong.runs.find import load_weights

_IN_RED = np.ones(256, bool)  # what is no background
_IN_RED[list(BACKGROUND_RED)] = False


class Agent:
    """A policy's weights, and what it has seen of the games that it plays.

    One agent plays any number of games side by side; the first call after `reset` says how many. It learns nothing.

    >>> agent = fastpong.load()
    >>> envs = gymnasium.make_vec("fastpong/Pong-v0", num_envs=3, autoreset_mode="SameStep")
    >>> screens, _ = envs.reset(seed=0)
    >>> for _ in range(5):
    ...     screens, _, terminated, truncated, _ = envs.step(agent.act(screens))
    ...     agent.reset(terminated | truncated)
    >>> agent.probabilities(screens).shape, agent.value(screens).shape
    ((3, 3), (3,))
    >>> envs.close()

    Attributes
    ----------
    config : Config
        How it was trained, and the rules by which it plays.
    weights : dict
        Arrays float32 by name, see `fastpong.policy`.
    name : str
        Where it comes from.
    """

    def __init__(
        self, config: Config, weights: Arrays, name: str = "an agent", *, sample: bool = False, seed: int = 0,
        actions: int = 6,
    ):  # fmt: skip
        if actions not in ACTION_SETS or actions < config.num_actions:
            raise UsageError(f"an agent with {config.num_actions} actions cannot play with a set of {actions!r}")
        self.config, self.name, self.sample = config, name, sample
        try:
            self.weights = checked_weights(config, weights)
        except ValueError as error:
            raise UsageError(f"these weights are none of such an agent: {error}") from None
        self._numbers = np.argsort(ACTION_SETS[actions])[: config.num_actions]  # what the env calls the policy's
        self._rng = np.random.default_rng(seed)
        self._is_mlp = config.algorithm == "reinforce"
        self._frames = 2 if self._is_mlp else config.frame_stack
        self._ages: Any = None  # steps of each game so far
        self._actions: I64 = np.zeros((0, 0), np.int64)

    def reset(self, games: "npt.ArrayLike | None" = None) -> None:
        """Forget some games: a mask or indices of those whose next screen is a first one; by default all.

        Raises `UsageError` for a mask or indices of other games.
        """
        if games is None:
            self._ages = None
        elif self._ages is not None:
            try:
                self._ages[np.asarray(games)] = 0
            except IndexError as error:
                raise UsageError(f"the agent plays {len(self._ages)} games: {error}") from None

    def act(self, screens: npt.NDArray[Any]) -> Any:
        """Choose actions, and remember the screens: one step of each game.

        `screens` is uint8, palette indices (210, 160) or colours (210, 160, 3), of one game or, with another dimension
        before these, of several. Returns an int, or int64 (n,), in the numbers of ``ALE/Pong-v5`` (or in those of
        another set of actions, if the agent was loaded for one). The likeliest action, unless the agent samples.
        Raises `UsageError` for arrays of another shape or type, or another number of games.
        """
        courts, one = self._courts(screens)
        probabilities = dense.softmax(self._outputs(courts)[0])
        if self.sample:
            chosen = (probabilities.cumsum(1) < self._rng.random((len(courts), 1))).sum(1)
            chosen = np.minimum(chosen, probabilities.shape[1] - 1)
        else:
            chosen = probabilities.argmax(1)
        self._remember(courts, chosen)
        actions = self._numbers[chosen]
        return int(actions[0]) if one else actions

    def remember(self, screens: npt.NDArray[Any], actions: "npt.ArrayLike") -> None:
        """Remember a step of each game for which somebody else chose: `screens` and `actions` as for `act`.

        Raises `UsageError` for actions that the policy does not have.
        """
        courts, _ = self._courts(screens)
        found = np.atleast_1d(np.asarray(actions))[:, None] == self._numbers
        if found.shape[0] != len(courts) or not found.any(1).all():
            raise UsageError(f"the actions are {len(courts)} of {self._numbers.tolist()}, not {actions!r}")
        self._remember(courts, found.argmax(1))

    def _remember(self, courts: Bool, chosen: I64) -> None:
        self._images = self._stacked(courts)[:, : self._frames - 1]
        self._actions = np.concatenate([chosen[:, None], self._actions], 1)[:, : self.config.action_history]
        self._ages += 1

    def probabilities(self, screens: npt.NDArray[Any]) -> F32:
        """Return the probability of each of the policy's actions (up, down, no-op): float32 (actions,) or (n, actions).

        Those with which `act` would choose for these screens; nothing is remembered.
        """
        courts, one = self._courts(screens)
        probabilities = dense.softmax(self._outputs(courts)[0])
        return probabilities[0] if one else probabilities

    def value(self, screens: npt.NDArray[Any]) -> Any:
        """Return the discounted points that the policy expects, a float or float32 (n,); nothing is remembered.

        Raises `UsageError` for an agent of the reference programs, which expects nothing.
        """
        courts, one = self._courts(screens)
        values = self._outputs(courts)[1]
        if values is None:
            raise UsageError(f"{self.name} has no value: preset {self.config.preset} learns none")
        return float(values[0]) if one else values

    def _courts(self, screens: npt.NDArray[Any]) -> tuple[Bool, bool]:
        """Return what the policy sees of some screens, bool (n, rows, columns), and whether they are of one game."""
        array = np.asarray(screens)
        colours = array.shape[-3:] == (*SCREEN, 3)
        one = array.ndim == (3 if colours else 2)
        if (
            array.dtype != np.uint8
            or not (one or array.ndim == 3 + colours)
            or not (colours or array.shape[-2:] == SCREEN)
        ):
            raise UsageError(
                f"screens are uint8, (210, 160) palette indices or (210, 160, 3) colours, of one game or with a "
                f"dimension before these, not {array.dtype} {array.shape}"
            )
        many: U8 = array[None] if one else array
        if self._ages is None:
            self._begin(len(many))
        if len(many) != len(self._ages):
            raise UsageError(f"the agent plays {len(self._ages)} games, not {len(many)}: call reset() before others")
        table = IS_SET
        if colours:
            many, table = many[..., 0], _IN_RED
        if self._is_mlp:
            return table[many[:, COURT_TOP + 1 : COURT_TOP + 161 : 2, ::2]], one
        return table[many[:, COURT_TOP : COURT_TOP + COURT[0], ::2]], one

    def _begin(self, count: int) -> None:
        shape = (80, 80) if self._is_mlp else COURT
        self._ages = np.zeros(count, np.int64)
        self._images = np.zeros((count, self._frames - 1, *shape), bool)
        self._actions = np.zeros((count, self.config.action_history), np.int64)

    def _stacked(self, courts: Bool) -> Bool:
        """Return the images that the policy gets, bool (n, frames, rows, columns), the newest first."""
        known = np.arange(1, self._frames) <= self._ages[:, None]
        return np.concatenate([courts[:, None], self._images & known[:, :, None, None]], 1)

    def inputs(self, screens: npt.NDArray[Any]) -> tuple[F32, F32]:
        """Return what the network gets for these screens; nothing is remembered.

        That is the ``images`` and ``side`` of `fastpong.dense.outputs`, or ``changes`` (n, 6400) and nothing.
        """
        return self._inputs(self._courts(screens)[0])

    def _inputs(self, courts: Bool) -> tuple[F32, F32]:
        images = self._stacked(courts).astype(np.float32)
        if self._is_mlp:
            changes = (images[:, 0] - images[:, 1]) * (self._ages > 0)[:, None, None]
            return changes.reshape(len(courts), -1), np.zeros((len(courts), 0), np.float32)
        side = np.zeros((len(courts), dense.SIDE_INPUTS), np.float32)
        side[:, 0] = 1.0
        for lag in range(self.config.action_history):
            games = np.flatnonzero(self._ages > lag)
            side[games, 1 + lag * self.config.num_actions + self._actions[games, lag]] = 1.0
        return images, side

    def _outputs(self, courts: Bool) -> tuple[F32, F32 | None]:
        """Return the logits (n, actions), and the values (n,)."""
        first, second = self._inputs(courts)
        if self._is_mlp:
            return dense.mlp_logits(self.weights, first), None
        return dense.outputs(self.weights, first, second)

    def __str__(self) -> str:
        actions, sticky = "sampled" if self.sample else "greedy", self.config.repeat_action_probability
        return f"{self.name}, {actions} actions, sticky {sticky:g}"


def load(
    checkpoint: "Path | str | None" = None, *, sticky: float | None = None, sample: bool = False, seed: int = 0,
    actions: int = 6,
) -> Agent:  # fmt: skip
    """Load an agent from a checkpoint, a ``best.npz`` or a run folder; by default the one that ships with the package.

    >>> fastpong.load().config.preset
    'fast'

    `sticky` is the probability at each frame that an action is repeated in games that `fastpong.evaluate` plays, by
    default that of training. With `sample` it samples its actions, from `seed`. `actions` is the set in whose numbers
    it acts: 6 for ``ALE/Pong-v5``, or 2 or 3, see `fastpong.gym.PongVectorEnv`. Raises `CheckpointError`, or
    `UsageError` for an impossible value.
    """
    if checkpoint == "":
        raise UsageError("the path of a checkpoint is empty: leave it out for the agent that ships with the package")
    path = None if checkpoint is None else Path(checkpoint)
    config, weights = load_weights(path)
    changes = {} if sticky is None else {"repeat_action_probability": sticky}
    name = str(checkpoint or "the shipped agent")
    return Agent(changed(config, changes), weights, name, sample=sample, seed=seed, actions=actions)
