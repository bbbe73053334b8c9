"""Clipped policy gradients (PPO) on the convolutional network, with a value output and Adam."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.adam import Adam, Half
from fastpong.config import Config, changed
from fastpong.cores import usable_cores
from fastpong.critic import Critic
from fastpong.importance import chances_of, temper
from fastpong.kernels import passes, ppo
from fastpong.kernels.sites import Listed, list_sites
from fastpong.noise import SHUFFLE, stream_key
from fastpong.policy import Policy, make_policy, shapes
from fastpong.ranks import Alone, Ranks
from fastpong.rollout import Rollout, standardised
from fastpong.schedule import Schedule
from fastpong.tally import Tally

F32 = npt.NDArray[np.float32]

_STOP = 2.0  # times `kl`: a pass over the batch that finds more is the last one


@dataclass(frozen=True)
class Lesson:
    """A batch as its passes see it.

    `listed` (see `list_sites`) tells of its samples only, of which the first is sample `first` of the rollout; the
    arrays float32 (rows · games,) tell of the rollout's samples, those before `first` included, which are history.
    `chances` are 0 where nothing is to be learned, `importance` is 1 / `chances` elsewhere.
    """

    rollout: Rollout
    listed: Listed
    first: int
    advantages: F32
    targets: F32
    chances: F32
    importance: F32
    learning_rate: float
    entropy: float


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
        if self.critic and self.critic.ready:
            values, lam = self.critic.values(rollout, begin, end + 1), c.critic_gae_lambda
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
        starts, lengths, ages = (array.reshape(-1) for array in (rollout.starts, rollout.lengths, rollout.ages))
        steps = np.arange(begin * count, end * count)
        importance: F32 = np.reciprocal(np.maximum(chances.reshape(-1), np.float32(1e-9)))
        lesson = Lesson(
            rollout, list_sites(rollout.items, starts, lengths, ages, count, steps, c.frames), begin * count,
            advantages.reshape(-1), targets.reshape(-1), chances.reshape(-1), importance,
            self.schedule.learning_rate(tally.steps), self.schedule.entropy(tally.steps),
        )  # fmt: skip
        # Keyed by the number of updates, so that a resumed run draws the same minibatches.
        rng = np.random.default_rng([stream_key(c.seed, SHUFFLE), self.adam.updates])
        for half in self.adam.halves:
            half.sums[:] = 0.0
        limit = self.schedule.kl
        epochs, total_kl, samples = 0, 0.0, self._sum_of(float(np.sum(played)))
        while epochs < c.epochs:
            self.go_over(lesson, (end - begin) * c.envs, rng)
            epochs, before = epochs + 1, total_kl
            total_kl = self._sum_of(sum(float(half.sums[1]) for half in self.adam.halves))
            # Now and then noise moves a policy with large logits too far, and further with every pass.
            if limit and total_kl - before > _STOP * limit * samples:
                break
        if c.local_steps > 1:
            self.adam.average()
        goals = targets[begin:][played].astype(np.float64)
        rewards = np.where(practised, 0, rollout.rewards[begin:end])
        sums = np.array(
            [
                *np.sum([half.sums for half in self.adam.halves], axis=0),
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
            "practised": float(sums[9]) / ((end - begin) * c.envs),
        }
        if self.critic and self.schedule.won_by is not None:
            rollout.keep = c.critic * c.rollout_steps
            self.critic.learn(rollout, gamma, c.critic_rate * self.schedule.left(tally.steps))
        rollout.begins[:] = end
        self.schedule.add(tally.steps, int(sums[7]), int(sums[8]), float(sums[1]))
        # Drawn actions differ from the likeliest one even where that is known to be better: without growing logits the
        # entropy stays at a third of its greatest value, whatever the weight of its bonus.
        self.policy.arrays["w2"][: c.actions] *= np.float32(self.schedule.growth(tally.steps, float(sums[0])))

    def go_over(self, lesson: Lesson, size: int, rng: np.random.Generator) -> None:
        """Go over a batch that has `size` samples on all ranks together."""
        c, count = self.config, lesson.rollout.games
        rows, games = np.divmod(rng.permutation(size), c.envs)
        draws = rng.random(size, np.float32) if c.pass_share < 1.0 else np.zeros(size, np.float32)
        mine = (games >= self.games.start) & (games < self.games.stop)
        picks, minibatch = (rows * count + games - self.games.start)[mine], (np.arange(size) // c.minibatch)[mine]
        chances = lesson.chances[lesson.first + picks]
        number = -(-size // c.minibatch)
        sizes = np.minimum(c.minibatch, size - c.minibatch * np.arange(number))
        if c.local_steps > 1:
            sizes = np.maximum(1, np.bincount(minibatch, chances > 0.0, number).astype(np.int64))
        drawn = draws[mine] < chances
        picks, ends = picks[drawn], np.searchsorted(minibatch[drawn], np.arange(number + 1))
        if self.adam.together:
            self._pass(lesson, picks, ends, sizes)
            return
        for part, samples in zip(np.split(picks, ends[1:-1]), sizes.tolist(), strict=True):
            self._step(lesson, part, samples)

    def _pass(self, lesson: Lesson, picks: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], sizes: Any) -> None:
        """Take the steps of `_step` for all minibatches: the samples of number b are ``picks[ends[b]:ends[b + 1]]``."""
        c, rollout, adam = self.config, lesson.rollout, self.adam
        names = ("kernel", "bias", "w1", "w2")
        given = (lesson.advantages, lesson.targets, lesson.importance, rollout.planned)
        steps = tuple(array.reshape(-1) for array in (rollout.ages, rollout.actions, rollout.log_probs, *given))

        def work(which: int, place: npt.NDArray[np.int64]) -> bool:
            half, other = adam.halves[which], adam.halves[1 - which]
            return passes.half_of_pass(
                which, place, lesson.listed, picks, ends, 1.0 / sizes, lesson.first, rollout.games, steps,
                tuple(self.policy.arrays[name] for name in names), tuple(half.arrays[name] for name in names),
                half.touched, other.touched, half.sums, adam.buffers, adam.few, adam.w1_begin, c.past_actions, c.clip,
                c.clip_high, lesson.entropy, c.value_weight, lesson.learning_rate, c.adam_beta_1, c.adam_beta_2,
                c.adam_epsilon, adam.updates,
            )  # fmt: skip

        adam.meeting(work)
        adam.updates += len(sizes)

    def _step(self, lesson: Lesson, picks: npt.NDArray[np.int64], size: int) -> None:
        """Take a step of the optimiser for a minibatch that stands for `size` samples.

        Those of them that were drawn and are here are `picks`, int64 (m,), as indices into what `lesson.listed` lists.
        """
        c, rollout = self.config, lesson.rollout
        kernel, bias, w1, w2 = (self.policy.arrays[name] for name in ("kernel", "bias", "w1", "w2"))

        def add_up(half: Half, part: npt.NDArray[np.int64]) -> None:
            ppo.clipped_gradient(
                *lesson.listed, part, rollout.ages.reshape(-1), rollout.games, rollout.actions.reshape(-1),
                rollout.log_probs.reshape(-1), lesson.advantages, lesson.targets, lesson.importance,
                rollout.planned.reshape(-1), lesson.first + part, kernel, bias, w1, w2, c.past_actions, c.clip,
                c.clip_high, lesson.entropy, c.value_weight, 1.0 / size,
                half.arrays["kernel"], half.arrays["bias"], half.arrays["w1"], half.arrays["w2"],
                half.touched, half.sums,
            )  # fmt: skip

        self.adam.step(add_up, picks, lesson.learning_rate)

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

    def warm_up_critic(self) -> None:
        """Compile or load those of the critic, which it needs once the agent wins; changes nothing."""
        if self.critic:
            spare, rollout = self._spare(critic=1)
            assert spare.critic
            spare.critic.learn(rollout, 1.0, 0.0)
            spare.critic.values(rollout, 0, 1)
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
