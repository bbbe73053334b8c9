"""A value network of its own, which learns from the steps of many batches.

PPO's own value shares its features with the policy and learns from each batch once. That of a network apart, which goes
on learning from older batches toward returns that its own running mean completes, explains more of the returns, and
its TD errors have a third of the variance (docs/learning.md, "A better judge"). What differs from PPG (Cobbe et al.,
"Phasic policy gradient", 2021) is that nothing goes back to the policy but the advantages.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.adam import Adam
from fastpong.config import Config
from fastpong.kernels import aligned, passes, ppo, value
from fastpong.kernels.records import Optimiser
from fastpong.kernels.sites import deal
from fastpong.minibatch import Halves, Minibatches, to_deal, views_of
from fastpong.noise import CRITIC, stream_key
from fastpong.policy import draw_weights, shapes, views
from fastpong.ranks import Ranks
from fastpong.rollout import Rollout

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

SPAN = 32
"""Rows of a stretch of steps that is drawn from what is remembered: long enough for λ 0.9."""

_AT_ONCE = 4096
"""Samples whose values are computed in one go, at most: the more, the more of their views are alike, but what the
kernels keep for them has to stay in a core's cache."""


class Critic:
    """The value network, its running mean, and what it learns.

    Parameters
    ----------
    config : Config
        Uses the ``critic*`` settings, `hidden`, `minibatch` and those of `Adam`.
    ranks : Ranks
        Who learns together.
    games : range
        The games of this rank.
    pool : ThreadPoolExecutor or None
        See `Adam`.

    Attributes
    ----------
    mean : dict of float32
        The running mean of the weights, by name: its values count.
    batches : int
        How many batches it has learned after.
    """

    def __init__(self, config: Config, ranks: Ranks, games: range, pool: ThreadPoolExecutor | None):
        self.config, self.ranks, self.games = config, ranks, games
        of = {**shapes(config), "w2": (1, config.hidden + 1)}
        size = sum(int(np.prod(shape)) for shape in of.values())
        self._weights, self._mean = aligned.zeros(size), aligned.zeros(size)
        self._arrays, self.mean = views(of, self._weights), views(of, self._mean)
        draw_weights(config, self._arrays, np.random.default_rng(stream_key(config.seed, CRITIC)))
        self.adam = Adam(config, of, self._weights, ranks, pool)
        self.batches = 0

    @property
    def ready(self) -> bool:
        """Whether its values are to be used: what it remembers is then full for the first time."""
        return self.batches >= self.config.critic

    def values(self, rollout: Rollout, views: Halves, samples: I64) -> F32:
        """Return the values float32 (m,) of some samples, int64 (m,), whose `views` were listed."""
        c, mean, index = self.config, self.mean, np.arange(len(samples))
        parts = 2 * -(-len(samples) // (2 * _AT_ONCE))  # as many for either thread
        size = -(-len(samples) // parts)
        places = index // size << 32 | index % size
        bounds, rows, kinds = to_deal(views, parts)

        def deal_half(half: int) -> None:
            deal(views[half], places, bounds, rows[half], kinds[half])

        self.adam.both(deal_half, [0, 1])
        values = np.zeros(len(samples), np.float32)

        def compute(first: int, last: int) -> None:
            value.values_of(
                views, bounds, rows, kinds, size, first, last, rollout.ages.reshape(-1), rollout.games,
                rollout.actions.reshape(-1), samples, mean["kernel"], mean["bias"], mean["w1"], mean["w2"],
                c.past_actions, c.actions, values,
            )  # fmt: skip

        self.adam.both(compute, [0, parts // 2], [parts // 2, parts])
        return values

    def learn(self, rollout: Rollout, gamma: float, learning_rate: float) -> None:
        """Learn from steps drawn from all rows but the last, and the first, whose history is gone.

        Parameters
        ----------
        rollout : Rollout
            Holds the batch just learned from and those before it that it keeps.
        gamma : float
            Discount factor per step of the λ-returns.
        learning_rate : float
            Adam's step size.
        """
        c, count = self.config, rollout.games
        first, end = rollout.history, rollout.rows - 1
        span = min(SPAN, end - first)
        rng = np.random.default_rng([stream_key(c.seed, CRITIC), self.adam.updates])
        number = max(1, round(c.critic_visits * c.rollout_steps / span))
        rows = rng.integers(first, end - span + 1, number)[:, None] + np.arange(span + 1)  # the last one completes
        samples = (rows[:, :, None] * count + np.arange(count)).reshape(-1)
        views = views_of(rollout, samples, c.frames, self.adam.both)
        values = self.values(rollout, views, samples).reshape(number, span + 1, count)
        targets = np.zeros_like(values)
        targets[:, :-1] = self._targets(rollout, rows[:, :-1], values, gamma)
        practised = rollout.practising[rows] != 0
        learnable = (rollout.held[rows] == 0) & ~(practised & (rollout.ages[rows] < rollout.history))
        goals, known = targets.reshape(-1), learnable.reshape(-1)
        size = number * span * c.envs
        steps, games = np.divmod(rng.permutation(size), c.envs)
        picks = (steps + steps // span) * count + games - self.games.start
        wanted = (games >= self.games.start) & (games < self.games.stop)
        wanted[wanted] = known[picks[wanted]]
        minibatch = (np.arange(size) // c.minibatch)[wanted]
        parts = -(-size // c.minibatch)
        sizes = np.minimum(c.minibatch, size - c.minibatch * np.arange(parts))
        if c.local_steps > 1:
            sizes = np.maximum(1, np.bincount(minibatch, minlength=parts))
        picks, ends = picks[wanted], np.searchsorted(minibatch, np.arange(parts + 1))
        over = Minibatches(views, samples, c.minibatch, parts, c.hidden).of(picks, ends, 1.0 / sizes)
        ages, actions = rollout.ages.reshape(-1), rollout.actions.reshape(-1)

        def work(which: int, place: I64, begin: int, end: int, settings: Optimiser) -> bool:
            return passes.half_of_value_pass(
                which, place, begin, end, views, over, ages, actions, goals, count, c.past_actions, c.actions,
                self.adam.network, self.adam.gradients, self.adam.touched, settings, c.critic_decay, self._weights,
                self._mean,
            )  # fmt: skip

        def follow() -> None:
            # As in the kernel: at first the mean is that of all weights so far, and not of those of the start.
            self._mean += np.float32(max(1.0 - c.critic_decay, 1.0 / self.adam.updates)) * (self._weights - self._mean)

        self.adam.run(work, parts, learning_rate, follow)
        if c.local_steps > 1 and self.ranks.size > 1:
            self.adam.average()
            self.ranks.sum(self._mean)
            self._mean /= np.float32(self.ranks.size)
        self.batches += 1

    def _targets(self, rollout: Rollout, rows: I64, values: F32, gamma: float) -> F32:
        """Return λ-returns float32 (number, span, games) of stretches of rows (number, span)."""
        number, span, count = len(rows), rows.shape[1], rollout.games

        def side_by_side(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(array.shape[1], number * count)

        targets, spare = np.zeros((span, number * count), np.float32), np.zeros((span, number * count), np.float32)
        lam = self.config.critic_lambda
        ppo.advantages_of(
            side_by_side(rollout.rewards[rows]), side_by_side(rollout.ended[rows]), side_by_side(values),
            gamma, lam, lam, side_by_side(rollout.traces(rows)), spare, targets,
        )  # fmt: skip
        return targets.reshape(span, number, count).swapaxes(0, 1)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays by name."""
        own = {"weights": self._weights, "means": self._mean, "batches": np.array(self.batches), **self.adam.state()}
        return {f"critic_{name}": array for name, array in own.items()}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        own = {name.removeprefix("critic_"): array for name, array in arrays.items() if name.startswith("critic_")}
        self._weights[:], self._mean[:] = own["weights"], own["means"]
        self.batches = int(own["batches"])
        self.adam.load_state(own)
