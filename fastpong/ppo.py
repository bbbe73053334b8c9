"""Clipped policy gradients (PPO) on the convolutional network, with a value output and Adam."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.adam import HALVES, Adam
from fastpong.config import Config, changed
from fastpong.cores import usable_cores
from fastpong.critic import Critic
from fastpong.importance import chances_of, temper
from fastpong.kernels import passes, ppo
from fastpong.kernels.ppo import Objective, Steps
from fastpong.kernels.records import Optimiser
from fastpong.minibatch import Minibatches, views_of
from fastpong.noise import SHUFFLE, stream_key
from fastpong.policy import Policy, make_policy, shapes
from fastpong.ranks import Alone, Ranks
from fastpong.rollout import Rollout, standardised
from fastpong.schedule import Schedule
from fastpong.tally import Tally

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

_STOP = 2.0  # times `kl`: a pass over the batch that finds more is the last one


@dataclass(frozen=True)
class Lesson:
    """A batch as its passes see it.

    `steps` tells of the rollout's rows · games samples. `picks`, int64 (size,), has for each step of the batch, on all
    ranks together, its index in `minibatches`, or −1 if it is another rank's or nothing is to be learned from it;
    `chances`, float32 (size,), are those of being drawn.
    """

    minibatches: Minibatches
    steps: Steps
    games: int
    picks: I64
    chances: F32
    learning_rate: float
    entropy: float

    @staticmethod
    def of(
        rollout: Rollout, minibatches: Minibatches, advantages: F32, targets: F32, chances: F32, games: range,
        envs: int, learning_rate: float, entropy: float,
    ) -> "Lesson":  # fmt: skip
        """Put one together.

        The arrays float32 (rows, games) may have fewer rows than the rollout; the batch are those from the first
        sample of `minibatches` on. `games` are the rank's, of `envs`.
        """
        new = chances[int(minibatches.samples[0]) // rollout.games :]
        picks, everyones = np.full((len(new), envs), -1, np.int64), np.zeros((len(new), envs), np.float32)
        own = slice(games.start, games.stop)
        picks[:, own] = np.where(new > 0.0, np.arange(new.size).reshape(new.shape), -1)
        everyones[:, own] = new
        importance: F32 = np.reciprocal(np.maximum(chances, np.float32(1e-9)))
        steps = Steps(
            rollout.ages.reshape(-1), rollout.actions.reshape(-1), rollout.log_probs.reshape(-1),
            advantages.reshape(-1), targets.reshape(-1), importance.reshape(-1), rollout.planned.reshape(-1),
        )  # fmt: skip
        return Lesson(
            minibatches, steps, rollout.games, picks.reshape(-1), everyones.reshape(-1), learning_rate, entropy
        )


class PPO:
    """Goes over every `batch_steps` steps several times, in minibatches.

    Parameters
    ----------
    config : Config
        Uses `batch_steps`, `epochs`, `pass_share`, `minibatch`, `gae_lambda`, `value_lambda`, `clip`, `clip_high`,
        `entropy`, `value_weight`, `learning_rate`, the ``adam_*`` settings and those of `Schedule`.
    policy : Policy
        The weights to change; it has a value output.
    ranks : Ranks
        Who learns together.
    games : range
        The games of this rank; all of them by default.

    Attributes
    ----------
    schedule : Schedule
        Learning rate, entropy weight and greed.
    adam : Adam
        The optimiser.
    statistics : dict of str to float
        Means over the last batch: ``entropy`` and ``kl`` (nats), ``clipped`` (share of samples) and ``explained``
        (share of the variance of the returns that the value explains); the present ``learning_rate``; and which share
        of the steps was ``practised``.
    """

    def __init__(self, config: Config, policy: Policy, ranks: Ranks | None = None, games: range | None = None):
        self.config, self.policy = config, policy
        self.ranks, self.games = ranks or Alone(), games or range(config.envs)
        # The emulators wait while the weights change, so a second core is free for it, unless it is another rank's.
        cores = max(1, usable_cores() // self.ranks.neighbours)
        # One half is this thread's: it would only wait.
        self._pool = ThreadPoolExecutor(1, "learner") if cores > 1 else None
        self.adam = Adam(config, shapes(config), policy.weights, self.ranks, self._pool)
        self.critic = Critic(config, self.ranks, self.games, self._pool) if config.critic else None
        self.schedule = Schedule(config)
        self._sums = np.zeros((HALVES, 4))
        self.statistics: dict[str, float] = {}

    @property
    def updates(self) -> int:
        """Steps of the optimiser so far."""
        return self.adam.updates

    def due(self, rollout: Rollout, tally: Tally) -> bool:
        """Whether all new rows but the last, which has no outcome yet, make a batch."""
        return rollout.rows - int(rollout.begins[0]) > self.config.rollout_steps

    def learn(self, rollout: Rollout, tally: Tally) -> None:
        """Learn from all new rows but the last, whose value stands for what comes after them."""
        c = self.config
        begin, end = int(rollout.begins[0]), rollout.rows - 1
        # With the rows of history, so that the indices of the rollout's rows fit.
        count = rollout.games
        advantages, targets = np.zeros((end, count), np.float32), np.zeros((end, count), np.float32)
        values, lam, gamma = rollout.values[begin : end + 1], c.gae_lambda, self.schedule.gamma(tally.steps)
        samples = np.arange(begin * count, (end + 1) * count)  # with the last row, for its values
        views = views_of(rollout, samples, c.frames, self.adam.both)
        if self.critic and self.critic.ready:
            values = self.critic.values(rollout, views, samples).reshape(-1, count)
            lam = c.critic_gae_lambda
        ppo.advantages_of(
            rollout.rewards[begin:end], rollout.ended[begin:end], values, gamma, lam, c.value_lambda,
            rollout.traces(slice(begin, end)), advantages[begin:], targets[begin:],
        )  # fmt: skip
        practised = rollout.practising[begin:end] != 0
        # A practice attempt begins amid a point, and its first steps are not yet seen as they would be there.
        played = (rollout.held[begin:end] == 0) & ~(practised & (rollout.ages[begin:end] < rollout.history))
        advantages[begin:][played] = standardised(advantages[begin:][played], self.ranks)
        temper(advantages[begin:], rollout.log_probs[begin:end], rollout.planned[begin:end])
        chances = np.zeros((end, count), np.float32)
        chances[begin:][played] = chances_of(
            advantages[begin:][played], rollout.log_probs[begin:end][played],
            (targets[begin:] - rollout.values[begin:end])[played], c.pass_share, self.ranks,
        )  # fmt: skip
        size = (end - begin) * c.envs
        lesson = Lesson.of(
            rollout, Minibatches(views, samples, c.minibatch, -(-size // c.minibatch), c.hidden), advantages, targets,
            chances, self.games, c.envs, self.schedule.learning_rate(tally.steps), self.schedule.entropy(tally.steps),
        )  # fmt: skip
        # Keyed by the number of updates, so that a resumed run draws the same minibatches.
        rng = np.random.default_rng([stream_key(c.seed, SHUFFLE), self.adam.updates])
        self._sums[:] = 0.0
        limit = self.schedule.kl
        epochs, total_kl, learned = 0, 0.0, self._sum_of(float(np.sum(played)))
        while epochs < c.epochs:
            self.go_over(lesson, rng)
            epochs, before = epochs + 1, total_kl
            total_kl = self._sum_of(float(self._sums[0, 1] + self._sums[1, 1]))
            # Now and then noise moves a policy with large logits too far, and further with every pass.
            if limit and total_kl - before > _STOP * limit * learned:
                break
        if c.local_steps > 1:
            self.adam.average()
        goals = targets[begin:][played].astype(np.float64)
        rewards = np.where(practised, 0, rollout.rewards[begin:end])
        sums = np.array(
            [
                *self._sums.sum(0),
                goals.sum(), np.square(goals).sum(), goals.size, np.sum(rewards > 0), np.sum(rewards < 0),
                practised.sum(),
            ]
        )  # fmt: skip
        self.ranks.sum(sums)
        sums[:4] /= epochs
        sums[:6] /= max(1.0, sums[6])
        spread = float(sums[5] - sums[4] ** 2)
        self.statistics = {
            "entropy": float(sums[0]),
            "kl": float(sums[1]),
            "clipped": float(sums[2]),
            "explained": 1.0 - float(sums[3]) / spread if spread > 0 else 0.0,
            "learning_rate": lesson.learning_rate,
            "practised": float(sums[9]) / size,
        }
        if self.critic and self.schedule.won_by is not None:
            rollout.keep = c.critic * c.rollout_steps
            self.critic.learn(rollout, gamma, c.critic_rate * self.schedule.left(tally.steps))
        rollout.begins[:] = end
        self.schedule.add(tally.steps, int(sums[7]), int(sums[8]), float(sums[1]))
        # Drawn actions differ from the likeliest one even where that is known to be better: without growing logits the
        # entropy stays at a third of its greatest value, whatever the weight of its bonus.
        self.policy.arrays["w2"][: c.actions] *= np.float32(self.schedule.growth(tally.steps, float(sums[0])))

    def go_over(self, lesson: Lesson, rng: np.random.Generator) -> None:
        """Go over a batch, in an order that is the same on all ranks."""
        c, size = self.config, len(lesson.picks)
        order, starts = rng.permutation(size), np.arange(0, size, c.minibatch)
        picks = lesson.picks[order]
        drawn, sizes = picks >= 0, np.diff(starts, append=size)
        if c.local_steps > 1:
            sizes = np.maximum(1, np.add.reduceat(drawn.astype(np.int64), starts))
        if c.pass_share < 1.0:
            drawn &= rng.random(size, np.float32) < lesson.chances[order]
        places, number, count = np.flatnonzero(drawn), len(starts), lesson.games
        over = lesson.minibatches.of(picks[places], np.searchsorted(places, [*starts, size]), 1.0 / sizes)
        objective = Objective(c.clip, c.clip_high, lesson.entropy, c.value_weight)

        def work(which: int, place: I64, begin: int, end: int, settings: Optimiser) -> bool:
            return passes.half_of_pass(
                which, place, begin, end, lesson.minibatches.views, over, lesson.steps, count, c.past_actions,
                objective, self.adam.network, self.adam.gradients, self.adam.touched, self._sums, settings,
            )  # fmt: skip

        self.adam.run(work, number, lesson.learning_rate)

    def _sum_of(self, number: float) -> float:
        """Return the sum of a number over the ranks."""
        sums = np.array([number])
        self.ranks.sum(sums)
        return float(sums[0])

    def warm_up(self) -> None:
        """Compile or load the kernels of every batch; changes nothing."""
        spare, rollout = self._spare(critic=0)
        spare.learn(rollout, Tally(1, 0.0))
        spare.close()
        self.adam.warm_up()

    def warm_up_critic(self) -> None:
        """Compile or load those of the critic, which it needs once the agent wins; changes nothing."""
        if self.critic:
            spare, rollout = self._spare(critic=1)
            assert spare.critic
            spare.critic.learn(rollout, 1.0, 0.0)
            samples = np.zeros(1, np.int64)
            views = views_of(rollout, samples, self.config.frames, spare.adam.both)
            spare.critic.values(rollout, views, samples)
            spare.close()

    def _spare(self, critic: int) -> tuple["PPO", Rollout]:
        one = changed(self.config, {"envs": 1, "critic": critic})
        rollout = Rollout(one)
        rollout.rows = rollout.history + 2
        return PPO(one, make_policy(one)), rollout

    def close(self) -> None:
        """Stop the threads."""
        if self._pool:
            self._pool.shutdown()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the weights, by name."""
        return {**self.adam.state(), **self.schedule.state(), **(self.critic.state() if self.critic else {})}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.adam.load_state(arrays)
        if self.critic:
            self.critic.load_state(arrays)
        self.schedule.load_state(arrays)
