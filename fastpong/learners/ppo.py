"""PPO: clipped policy gradients on the convolutional network, with a value output and Adam."""

from typing import NamedTuple

import numpy as np

from fastpong.arrays import F32, I64, Arrays, Bool
from fastpong.config import Config
from fastpong.kernels import epochs, returns
from fastpong.kernels.structs import Loss, Transitions
from fastpong.learners.schedule import Schedule
from fastpong.learners.threads import Threads, learner_threads
from fastpong.learners.updater import Epochs, Samples, Updater
from fastpong.noise import SHUFFLE, stream_key
from fastpong.parallel.comm import Communicator, normalized
from fastpong.policy import ConvPolicy
from fastpong.rollout.buffer import Rollout
from fastpong.rollout.episode_stats import EpisodeStats

VALUE_COEF = 0.5
"""Coefficient of half the squared error of the value."""


class _Batch(NamedTuple):
    """What a batch holds, (rows, envs) each; `samples` lists its steps, and the ones after it for their values."""

    samples: Samples
    learnable: Bool  # whether the policy chose the action, and not an exploring start
    advantages: F32  # normalized
    returns: F32  # what the value should have been


class PPO:
    """Runs several epochs of minibatches over every batch. See `fastpong.learners.base.Learner`.

    It takes the settings, the policy whose weights to change, who learns together, the envs of this rank, and on how
    many threads to learn: by default on `learner_threads`.
    `schedule` sets learning rate, coefficients, phase, and how large a batch is.
    """

    synchronise_every = 32
    ends_by_games = log_each_batch = False
    SLOW_KERNELS = (epochs.learn_minibatches,)

    def __init__(self, config: Config, policy: ConvPolicy, comm: Communicator, envs: range, threads: int | None = None):
        self.config, self.policy, self._comm, self._envs = config, policy, comm, envs
        self._threads = Threads(threads or learner_threads(comm))
        self._updater = Updater(policy.net, comm, self._threads)
        self.schedule = Schedule(config)
        self.statistics: dict[str, float | str | None] = {}

    @property
    def updates(self) -> int:
        """Steps of the optimiser so far."""
        return self._updater.updates

    def due(self, rollout: Rollout, stats: EpisodeStats) -> bool:
        """Whether all new rows but the last, which has no outcome yet, make a batch."""
        return self.steps_until_due(rollout) <= 0

    def steps_until_due(self, rollout: Rollout) -> int:
        """See `Learner`."""
        rows = self.config.rollout_steps * self.schedule.batch_factor
        return rows + 1 + int(rollout.first_unused[0]) - rollout.rows

    def reached(self, target: float, stats: EpisodeStats) -> bool:
        """Whether the score is at the target."""
        return stats.reached(target)

    def begin_late_phase(self, steps: int) -> None:
        """See `Schedule.begin_late_phase`."""
        self.schedule.begin_late_phase(steps)

    def learn(self, rollout: Rollout, stats: EpisodeStats) -> None:
        """Learn from all new rows but the last, whose value stands for what comes after them."""
        schedule = self.schedule
        begin, end = int(rollout.first_unused[0]), rollout.rows - 1
        batch = self._prepare(rollout, begin, end)
        epochs = self._run_epochs(rollout, batch, begin)
        sums = self._summarise(rollout, batch, begin, epochs)
        rollout.release(end)
        if schedule.adapt(stats.steps, int(sums["won"]), int(sums["lost"]), sums["kl"]):
            self._begin_anew(stats)
            return
        # With up and down alone a run finds out sooner how to attack, and keeps moves that a repeated action asks for.
        if schedule.win_rate >= self.config.noop_win_rate:
            self.policy.play_noop()
        # Sampled actions differ from the likeliest one even where that is known to be better: without growing logits
        # the entropy stays at a third of its greatest value, whatever the coefficient of its bonus.
        self.policy.scale_logits(schedule.logit_factor(sums["entropy"]))

    def _begin_anew(self, stats: EpisodeStats) -> None:
        """Draw other weights; of the old ones only the games go on."""
        self.policy.initialise(self.schedule.reinits, self.schedule.began)
        weights = self.policy.weights.flat
        weights[:] = self._comm.broadcast(weights)  # other machines may draw others
        self._updater = Updater(self.policy.net, self._comm, self._threads)
        self.statistics["reinits"] = self.schedule.reinits
        stats.synchronise(self._comm)  # so that ranks, and sessions that save elsewhere, forget the same games
        stats.forget_games()

    def _prepare(self, rollout: Rollout, begin: int, end: int) -> _Batch:
        """Compute advantages (GAE) and returns of the rows begin … end − 1, and list their distinct patches."""
        c, arrays, envs = self.config, rollout.arrays, rollout.num_envs
        samples = Samples(rollout.inputs, np.arange(begin * envs, (end + 1) * envs), self._threads)
        advantages, targets = (np.zeros((end - begin, envs), np.float32) for _ in range(2))
        returns.advantages_of(
            arrays.rewards[begin:end], arrays.ended[begin:end], arrays.values[begin : end + 1], c.gamma, c.gae_lambda,
            c.return_lambda, advantages, targets,
        )  # fmt: skip
        if c.baseline != "value":
            advantages[:] = targets
        learnable: Bool = arrays.forced[begin:end] == 0
        advantages[learnable] = normalized(advantages[learnable], self._comm, centred=c.baseline != "none")
        return _Batch(samples, learnable, advantages, targets)

    def _run_epochs(self, rollout: Rollout, batch: _Batch, begin: int) -> Epochs:
        """Run `update_epochs` epochs over a batch, with permutations that are the same on all ranks."""
        c, arrays, schedule = self.config, rollout.arrays, self.schedule
        rows = slice(begin, begin + len(batch.learnable))
        transitions = Transitions(
            arrays.actions[rows].reshape(-1), arrays.log_probs[rows].reshape(-1), batch.advantages.reshape(-1),
            batch.returns.reshape(-1),
        )  # fmt: skip
        loss = Loss(c.clip_low, c.clip_high, c.entropy_coef, VALUE_COEF, 0.0)
        size = c.minibatch_size * schedule.batch_factor
        epochs = Epochs(batch.samples, transitions, loss, self._sample_ids(batch.learnable), size, c.hidden_units)
        # Keyed by the number of updates, so that a resumed run draws the same minibatches.
        rng = np.random.default_rng([stream_key(c.seed, SHUFFLE), self.updates])
        everything = batch.learnable.shape[0] * c.num_envs
        for _ in range(c.update_epochs):
            self._updater.run(epochs.shuffled(rng.permutation(everything)), schedule.rate)
        return epochs

    def _sample_ids(self, learnable: Bool) -> I64:
        """Return for each step of the batch, of all ranks, its index among the listed samples, or −1."""
        ids = np.full((len(learnable), self.config.num_envs), -1, np.int64)
        own = slice(self._envs.start, self._envs.stop)
        ids[:, own] = np.where(learnable, np.arange(learnable.size).reshape(learnable.shape), -1)
        return ids.reshape(-1)

    def _summarise(self, rollout: Rollout, batch: _Batch, begin: int, epochs: Epochs) -> dict[str, float]:
        """Set the statistics of a batch after its epochs; return sums over all ranks, and means."""
        goals = batch.returns[batch.learnable].astype(np.float64)
        rewards = rollout.arrays.rewards[begin : begin + len(batch.learnable)]
        own = {
            **dict(zip(("entropy", "kl", "clipped", "error"), epochs.statistics.sum(0), strict=False)),
            "goals": goals.sum(), "squares": np.square(goals).sum(), "samples": float(goals.size),
            "won": float(np.sum(rewards > 0)), "lost": float(np.sum(rewards < 0)),
        }  # fmt: skip
        array = np.array(list(own.values()))
        self._comm.allreduce(array)
        array[:4] /= self.config.update_epochs
        array[:6] /= max(1.0, array[6])
        sums = dict(zip(own, array.tolist(), strict=True))
        variance = sums["squares"] - sums["goals"] ** 2
        self.statistics = {
            "phase": self.schedule.phase,
            "reinits": self.schedule.reinits,
            "entropy": sums["entropy"],
            "approx_kl": sums["kl"],
            "clip_fraction": sums["clipped"],
            "explained_variance": 1.0 - sums["error"] / variance if variance > 0 else 0.0,
            "learning_rate": self.schedule.rate,
        }
        return sums

    def close(self) -> None:
        """Stop the threads."""
        self._threads.close()

    def state(self) -> Arrays:
        """See `Learner`."""
        return {**self._updater.state(), **self.schedule.state()}

    def load_state(self, arrays: Arrays) -> None:
        """See `Learner`."""
        self._updater.load_state(arrays)
        self.schedule.load_state(arrays)
        self.policy.began = self.schedule.began
