"""Clipped policy gradients (PPO) on the convolutional network, with a value output and Adam."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config, changed
from fastpong.games import usable_cores
from fastpong.importance import chances_of
from fastpong.kernels import aligned, optimiser, ppo
from fastpong.kernels.convolution import INPUTS
from fastpong.kernels.sites import SITES, Listed, list_sites
from fastpong.noise import SHUFFLE, stream_key
from fastpong.policy import Policy, make_policy, views
from fastpong.ranks import Alone, Ranks
from fastpong.rollout import Rollout, standardised
from fastpong.schedule import Schedule
from fastpong.tally import Tally

F32 = npt.NDArray[np.float32]

HALVES = 2
"""Parts of a minibatch that are worked on at the same time, on any machine: so the sums are the same on all."""


_STOP = 2.0  # times `kl`: a pass over the batch that finds more is the last one


class _Half:
    """What one half of a minibatch adds up: a gradient, the sites whose rows of `w1` it touches, and statistics."""

    def __init__(self, config: Config, size: int):
        # The end is room for `touched`, so that one sum over the ranks does for both.
        self.buffer = aligned.zeros(size + SITES + 1)
        self.gradient = self.buffer[:size]
        self.arrays = views(config, self.gradient)
        self.touched = np.zeros(SITES + 1, np.bool_)
        self.sums = np.zeros(4)


@dataclass(frozen=True)
class _Lesson:
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
    updates : int
        Steps of the optimiser so far.
    statistics : dict of str to float
        Means over the last batch: ``entropy`` and ``kl`` (nats), ``clipped`` (share of samples) and ``explained``
        (share of the variance of the returns that the value explains); the present ``learning_rate``; and which share
        of the steps was ``practised``.
    """

    def __init__(self, config: Config, policy: Policy, ranks: Ranks | None = None, games: range | None = None):
        self.config, self.policy = config, policy
        self.ranks, self.games = ranks or Alone(), games or range(config.envs)
        self.mean, self.square = (aligned.zeros(len(policy.weights)) for _ in range(2))
        self._halves = [_Half(config, len(policy.weights)) for _ in range(HALVES)]
        self.gradient = self._halves[0].gradient
        # The emulators wait while the weights change, so a second core is free for it, unless it is another rank's.
        self._rows = np.zeros(INPUTS, np.int64)
        cores = max(1, usable_cores() // self.ranks.neighbours)
        # One half is this thread's: it would only wait.
        self._pool = ThreadPoolExecutor(1, "learner") if cores > 1 else None
        # Weights, both gradients, mean and mean square of each array, as matrices of rows.
        gradients = [half.gradient for half in self._halves]
        buffers = [views(config, buffer) for buffer in (policy.weights, *gradients, self.mean, self.square)]
        self._matrices = {
            name: [buffer[name].reshape(-1, buffer[name].shape[-1]) for buffer in buffers] for name in policy.arrays
        }
        self._few = {name: np.arange(len(self._matrices[name][0])) for name in ("kernel", "bias", "w2")}
        self.schedule = Schedule(config)
        self.updates = 0
        self.statistics: dict[str, float] = {}

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
        ppo.advantages_of(
            rollout.rewards[begin:end], rollout.ended[begin:end], rollout.values[begin : end + 1],
            self.schedule.gamma(tally.steps), c.gae_lambda, c.value_lambda, advantages[begin:], targets[begin:],
        )  # fmt: skip
        practised = rollout.practising[begin:end] != 0
        # A practice attempt begins amid a point, and its first steps are not yet seen as they would be there.
        played = (rollout.held[begin:end] == 0) & ~(practised & (rollout.ages[begin:end] < rollout.history))
        advantages[begin:][played] = standardised(advantages[begin:][played], self.ranks)
        chances = np.zeros((end, count), np.float32)
        chances[begin:][played] = chances_of(
            advantages[begin:][played], rollout.log_probs[begin:end][played],
            (targets[begin:] - rollout.values[begin:end])[played], c.pass_share, self.ranks,
        )  # fmt: skip
        starts, lengths, ages = (array.reshape(-1) for array in (rollout.starts, rollout.lengths, rollout.ages))
        steps = np.arange(begin * count, end * count)
        importance: F32 = np.reciprocal(np.maximum(chances.reshape(-1), np.float32(1e-9)))
        lesson = _Lesson(
            rollout, list_sites(rollout.items, starts, lengths, ages, count, steps, c.frames), begin * count,
            advantages.reshape(-1), targets.reshape(-1), chances.reshape(-1), importance,
            self.schedule.learning_rate(tally.steps), self.schedule.entropy(tally.steps),
        )  # fmt: skip
        # Keyed by the number of updates, so that a resumed run draws the same minibatches.
        rng = np.random.default_rng([stream_key(c.seed, SHUFFLE), self.updates])
        for half in self._halves:
            half.sums[:] = 0.0
        epochs, total_kl, samples = 0, 0.0, self._sum_of(float(np.sum(played)))
        while epochs < c.epochs:
            self._pass(lesson, (end - begin) * c.envs, rng)
            epochs, before = epochs + 1, total_kl
            total_kl = self._sum_of(sum(float(half.sums[1]) for half in self._halves))
            # Now and then noise moves a policy with large logits too far, and further with every pass.
            if c.kl and total_kl - before > _STOP * c.kl * samples:
                break
        if c.local_steps > 1:
            self._average()
        goals = targets[begin:][played].astype(np.float64)
        rewards = np.where(practised, 0, rollout.rewards[begin:end])
        sums = np.array(
            [
                *np.sum([half.sums for half in self._halves], axis=0),
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
        rollout.begins[:] = end
        self.schedule.add(tally.steps, int(sums[7]), int(sums[8]), float(sums[1]))
        # Drawn actions differ from the likeliest one even where that is known to be better: without growing logits the
        # entropy stays at a third of its greatest value, whatever the weight of its bonus.
        self.policy.arrays["w2"][: c.actions] *= np.float32(self.schedule.growth(tally.steps, float(sums[0])))

    def _pass(self, lesson: _Lesson, size: int, rng: np.random.Generator) -> None:
        """Go over a batch that has `size` samples on all ranks together."""
        c, count = self.config, lesson.rollout.games
        order = rng.permutation(size)
        draws = rng.random(size, np.float32) if c.pass_share < 1.0 else np.zeros(size, np.float32)
        for start in range(0, size, c.minibatch):
            part = slice(start, start + c.minibatch)
            rows, games = np.divmod(order[part], c.envs)
            mine = (games >= self.games.start) & (games < self.games.stop)
            picks = rows[mine] * count + games[mine] - self.games.start
            chances = lesson.chances[lesson.first + picks]
            learnable = int(np.count_nonzero(chances))
            drawn = picks[draws[part][mine] < chances]
            self._step(lesson, drawn, len(rows) if c.local_steps == 1 else max(1, learnable))

    def _step(self, lesson: _Lesson, picks: npt.NDArray[np.int64], size: int) -> None:
        """Take a step of the optimiser for a minibatch that stands for `size` samples.

        Those of them that were drawn and are here are `picks`, int64 (m,), as indices into what `lesson.listed` lists.
        """
        c, rollout, (first, second) = self.config, lesson.rollout, self._halves
        kernel, bias, w1, w2 = (self.policy.arrays[name] for name in ("kernel", "bias", "w1", "w2"))
        self.updates += 1

        def add_up(half: _Half, part: npt.NDArray[np.int64]) -> None:
            ppo.clipped_gradient(
                *lesson.listed, part, rollout.ages.reshape(-1), rollout.games, rollout.actions.reshape(-1),
                rollout.log_probs.reshape(-1), lesson.advantages, lesson.targets, lesson.importance,
                lesson.first + part, kernel, bias, w1, w2, c.past_actions, c.clip, c.clip_high, lesson.entropy,
                c.value_weight, 1.0 / size,
                half.arrays["kernel"], half.arrays["bias"], half.arrays["w1"], half.arrays["w2"],
                half.touched, half.sums,
            )  # fmt: skip

        self._both(add_up, self._halves, np.array_split(picks, HALVES))
        if self.ranks.size > 1 and c.local_steps == 1:
            ppo.merge(first.arrays["w1"], first.touched, second.arrays["w1"], second.touched)
            for name in ("kernel", "bias", "w2"):
                first.arrays[name] += second.arrays[name]
                second.arrays[name][:] = 0.0
            flags = first.buffer[len(first.gradient) :]
            flags[:] = first.touched
            self.ranks.sum(first.buffer, c.wire)
            first.touched[:] = flags > 0.0
        count = ppo.rows_of(first.touched, second.touched, self._rows)

        def step(name: str, rows: npt.NDArray[np.int64]) -> None:
            weights, gradient, other, mean, square = self._matrices[name]
            optimiser.adam_rows(
                weights, gradient, other, mean, square, rows, len(rows),
                lesson.learning_rate, c.adam_beta_1, c.adam_beta_2, c.adam_epsilon, self.updates,
            )  # fmt: skip

        self._both(step, ["w1"] * HALVES, np.array_split(self._rows[:count], HALVES))
        for name, rows in self._few.items():
            step(name, rows)
        if c.local_steps > 1 and self.updates % c.local_steps == 0:
            self._average()

    def _sum_of(self, number: float) -> float:
        """Return the sum of a number over the ranks."""
        sums = np.array([number])
        self.ranks.sum(sums)
        return float(sums[0])

    def _average(self) -> None:
        """Give all ranks the mean of their weights and of Adam's means ("local SGD")."""
        if self.ranks.size > 1:
            for array in (self.policy.weights, self.mean, self.square):
                self.ranks.sum(array)
                array /= np.float32(self.ranks.size)

    def _both(self, work: Any, *arguments: Any) -> None:
        """Call `work` with the arguments of each half, at the same time if there is a core for it."""
        first, second = zip(*arguments, strict=True)
        other = self._pool.submit(work, *second) if self._pool else None
        work(*first)
        if other:
            other.result()
        else:
            work(*second)

    def warm_up(self) -> None:
        """Compile or load the kernels used here; changes nothing."""
        one = changed(self.config, {"envs": 1})
        spare = PPO(one, make_policy(one))
        rollout = Rollout(one)
        rollout.rows = 2
        spare.learn(rollout, Tally(1, 0.0))
        spare.close()

    def close(self) -> None:
        """Stop the threads."""
        if self._pool:
            self._pool.shutdown()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything but the weights, by name."""
        updates = {"updates": np.array(self.updates)}
        return {"mean": self.mean, "square": self.square, **updates, **self.schedule.state()}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self.mean[:], self.square[:] = arrays["mean"], arrays["square"]
        self.updates = int(arrays["updates"])
        self.schedule.load_state(arrays)
