"""PPO on real steps: when it learns, from what, and that threads and ranks make no difference."""

from typing import Any

import numpy as np
import pytest

from fastpong.arrays import F32
from fastpong.config import Config
from fastpong.learners.ppo import PPO
from fastpong.parallel.comm import Communicator, Serial, env_range
from fastpong.parallel.sharding import cut
from fastpong.policy import ConvPolicy
from fastpong.rollout.buffer import LAYOUT
from fastpong.rollout.episode_stats import EpisodeStats
from tests.support.learners import after_41_steps, new_trainer, ppo_of, small
from tests.support.ranks import run_ranks


def test_it_learns_every_so_many_steps_from_all_of_them() -> None:
    config = small("fast")
    with new_trainer(config) as trainer:
        learned = []
        for step in range(1, 122):
            trainer.step()
            if trainer.learn_if_due():
                learned.append(step)
                # The step in flight, and what it looks back at.
                assert trainer.rollout.rows == 1 + max(config.frame_stack - 1, config.action_history)
        assert learned == [41, 81, 121]
        assert trainer.learner.updates == 3 * 3 * 5
        statistics: dict[str, Any] = trainer.learner.statistics
        assert 0 < statistics["entropy"] <= np.log(3) + 1e-6 and statistics["approx_kl"] >= 0
        assert 3e-3 / 1.1**2 <= statistics["learning_rate"] <= 3e-3
        assert statistics["phase"] == "early"


def test_an_agent_that_is_given_up_leaves_nothing_behind() -> None:
    """Weights and the optimiser's state are those of a new policy, drawn with another key."""
    with after_41_steps(small("fast", late_by_step=1)) as trainer:
        first = trainer.policy.weights.flat.copy()
        trainer.stats.load_state(trainer.stats.state() | {"recent": np.array([[3, 900]])})
        trainer.learner.learn(trainer.rollout, trainer.stats)
        assert trainer.stats.score is None, "it is of the games of the one that is given up"
        steps, state, second = trainer.stats.steps, trainer.learner.state(), trainer.policy.weights.flat.copy()
        assert trainer.learner.updates == 0 and not state["exp_avg"].any() and not state["exp_avg_sq"].any()
        assert state["schedule_began"].tolist() == [steps, 1] and trainer.policy.began == steps
        trainer.policy.initialise(1)
        np.testing.assert_array_equal(second, trainer.policy.weights.flat)
        trainer.policy.initialise()
        np.testing.assert_array_equal(first, trainer.policy.weights.flat)
        assert (second != first).any()


def learned(
    config: Config, rollout: dict[str, Any], threads: int, comm: Communicator | None = None, share: range | None = None
) -> dict[str, Any]:
    """Weights, state and statistics of a new learner after one batch; `rollout` is the state of all envs."""
    comm, envs = comm or Serial(), share or range(config.num_envs)
    policy = ConvPolicy(config, envs.start)
    rows = policy.make_rollout(len(envs))
    rows.load_state(cut(rollout, LAYOUT, envs))
    learner = PPO(config, policy, comm, envs, threads)
    learner.learn(rows, EpisodeStats(config.num_envs, 0.9, envs))
    learner.close()
    return {"weights": policy.weights.flat, **learner.state(), **learner.statistics}


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_any_number_of_threads_learn_what_one_does(threads: int) -> None:
    config = small("fast", minibatch_size=31)  # so that parts differ, and the last is short
    with after_41_steps(config) as trainer:
        trainer.rollout.arrays.rewards[10:40:3] = [1, -1, 1, 0]
        rollout = trainer.rollout.state()
    alone = learned(config, rollout, 1)
    assert alone["updates"] == 3 * 6 and not np.array_equal(alone["weights"], ConvPolicy(config).weights.flat)
    for _ in range(2):
        together = learned(config, rollout, threads)
        assert together.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_array_equal(together[name], value, err_msg=name)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_learn_what_one_process_does(ranks: int) -> None:
    """Four envs; weights differ by the order of float sums only, and not at all from rank to rank."""
    config = small("fast", minibatch_size=31, exploring_start_steps=6)
    with after_41_steps(config) as trainer:
        assert (trainer.rollout.arrays.forced[:40] != 0).any()
        trainer.rollout.arrays.rewards[10:40:3] = [1, -1, 1, 0]
        rollout = trainer.rollout.state()

    def work(comm: Communicator) -> dict[str, Any]:
        return learned(config, rollout, 1, comm, env_range(4, comm.rank, ranks))

    alone, together = learned(config, rollout, 1), run_ranks(ranks, work)
    for name, value in alone.items():
        for one in together:
            np.testing.assert_array_equal(one[name], together[0][name], err_msg=name)
        if isinstance(value, str | None):
            assert together[0][name] == value
        else:
            size = max(1e-3, float(np.abs(value).max(initial=0)))
            np.testing.assert_allclose(together[0][name], value, rtol=0, atol=1e-4 * size, err_msg=name)


def weights_after(lost: int, forced: int) -> F32:
    """Learn from 40 steps of four envs; two of them were forced, or not, and lost so often."""
    with after_41_steps(small("fast")) as trainer:
        arrays = trainer.rollout.arrays
        arrays.rewards[10, :2] = [1, -1]
        arrays.rewards[10 : 10 + lost, 2:] = -1
        arrays.forced[:40, 2:] = forced
        trainer.learner.learn(trainer.rollout, trainer.stats)
        return trainer.policy.weights.flat


@pytest.mark.parametrize(("baseline", "centred"), [("mean", True), ("none", False)])
def test_other_baselines_leave_returns(baseline: str, centred: bool) -> None:
    with after_41_steps(small("fast", baseline=baseline)) as trainer:
        trainer.rollout.arrays.rewards[10:40:3] = [1, -1, 1, 0]
        batch = ppo_of(trainer)._prepare(trainer.rollout, 0, 40)
    assert batch.learnable.all() and batch.returns.std() > 0.1
    left = batch.returns - batch.returns.mean() * centred
    np.testing.assert_allclose(batch.advantages, left / np.sqrt(np.square(left).mean()), atol=1e-5)


def test_nothing_is_learned_from_steps_of_an_exploring_start() -> None:
    np.testing.assert_array_equal(weights_after(0, 3), weights_after(20, 3))
    assert (weights_after(0, 0) != weights_after(20, 0)).any()


def test_points_of_a_run_begin_with_the_paddle_held_until_that_has_faded() -> None:
    with new_trainer(small("fast", batch_size=8192, exploring_start_steps=6, exploring_start_until=80)) as trainer:
        for _ in range(100):
            trainer.step()
        arrays = trainer.rollout.arrays
        forced, actions = arrays.forced[:100], arrays.actions[:100]
        assert forced[0].any() and (np.abs(forced[0]) <= 6).all() and not forced[6:].any()
        assert (actions[forced > 0] == 0).all() and (actions[forced < 0] == 1).all()
        assert (arrays.log_probs[:100][forced != 0] == 0).all() and (arrays.log_probs[:100][forced == 0] < 0).all()


def test_the_late_phase_has_larger_batches_and_growing_logits() -> None:
    """Its batches and minibatches are four times as large; while the entropy is high the logits grow."""
    with after_41_steps(small("fast", logit_growth=0.5, logit_growth_entropy=0.0, learning_rate=0.0)) as trainer:
        learner, weights = ppo_of(trainer), trainer.policy.weights.arrays["w2"]
        before = weights.copy()
        learner.learn(trainer.rollout, trainer.stats)
        np.testing.assert_array_equal(weights, before)
        learner.begin_late_phase(trainer.stats.steps)
        steps, updates = trainer.stats.steps, learner.updates
        while not trainer.learn_if_due():
            trainer.step()
        assert learner.statistics["phase"] == "late"
        c = learner.config
        batch = c.rollout_steps * c.num_envs
        assert trainer.stats.steps - steps == 4 * batch
        minibatches = -(-batch // c.minibatch_size)
        assert learner.updates - updates == c.update_epochs * minibatches
        np.testing.assert_array_equal(weights, before * np.array([[1.5], [1.5], [1.5], [1.0]], np.float32))


def test_noop_is_played_once_enough_points_are_won() -> None:
    """By the batch with which half of 1000 points are won, and not before; from then on it is learned like the rest."""
    with after_41_steps(small("fast")) as trainer:
        learner, weights = ppo_of(trainer), trainer.policy.weights.arrays["w2"]
        schedule = learner.schedule
        assert (trainer.rollout.arrays.actions[:40] < 2).all()
        schedule.adapt(0, 490, 520, 0.0)
        learner.learn(trainer.rollout, trainer.stats)
        assert schedule.win_rate < 0.5 and weights[2, -1] == -1e3
        schedule.adapt(0, 600, 410, 0.0)
        while not trainer.learn_if_due():
            trainer.step()
        assert schedule.win_rate >= 0.5
        np.testing.assert_array_equal(weights[2, :-1], weights[:2, :-1].mean(0))
        joined = weights[2].copy()
        while not trainer.learn_if_due():
            trainer.step()
        assert (trainer.rollout.arrays.actions[: trainer.rollout.rows] == 2).any()
        assert (weights[2] != joined).any() and weights[2, -1] == pytest.approx(joined[-1], abs=0.2)
