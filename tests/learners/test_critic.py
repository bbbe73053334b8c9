"""The critic on real steps: it learns what comes, from replay rows, and its state is complete."""

from typing import Any

import numpy as np

from fastpong.config import Config
from fastpong.learners.critic import SPAN, Critic
from fastpong.learners.updater import Samples
from fastpong.parallel.comm import Communicator, Serial, env_range
from fastpong.parallel.sharding import cut
from fastpong.policy import make_policy
from fastpong.rollout.buffer import LAYOUT
from fastpong.training.trainer import Trainer
from tests import naive
from tests.support import learners
from tests.support.learners import learn_batches, new_trainer, ppo_of, threads_of
from tests.support.ranks import run_ranks


def small(**changes: Any) -> Config:
    """The late phase begins with the end of the first batch, whatever is won."""
    settings = {"minibatch_size": 64, "update_epochs": 1, "critic_replay_batches": 3, "late_by_step": 0}
    return learners.small("fast", **{**settings, **changes})


def critic_of(trainer: Trainer) -> Critic:
    critic = ppo_of(trainer)._critic
    assert critic is not None
    return critic


def alone(config: Config, threads: int = 1) -> Critic:
    """A new critic of all envs."""
    return Critic(config, Serial(), range(config.num_envs), threads_of(threads))


def test_it_waits_for_so_many_batches_and_then_judges() -> None:
    with new_trainer(small()) as trainer:
        critic = critic_of(trainer)
        # The first batch is over before the late phase has begun, and of its rows only the history of the second one is
        # left.
        for batch, rows in ((1, 0), (2, 40), (3, 80), (4, 120), (5, 120), (6, 120)):
            learn_batches(trainer, 1)
            rollout = trainer.rollout
            assert critic.batches == batch - 1 and critic.ready == (batch > 3)
            assert int(rollout.first_unused[0]) == rollout.history + rows
            assert rollout.rows == int(rollout.first_unused[0]) + 1


def test_two_threads_learn_what_one_does() -> None:
    config = small(critic_replay_batches=2, minibatch_size=31, critic_samples_per_step=3.0)
    with new_trainer(config) as trainer:
        learn_batches(trainer, 4)
        states: list[dict[str, Any]] = []
        for threads in (2, 1):
            critic = alone(config, threads)
            explained = [critic.learn(trainer.rollout, 0.97, 1e-3) for _ in range(2)]
            samples = Samples(trainer.rollout.inputs, np.arange(40, 400), critic._threads)
            states.append({**critic.state(), "explained": explained, "values": critic.values(samples)})
            critic._threads.close()
    assert states[0]["critic_updates"] > 2
    for name, array in states[0].items():
        np.testing.assert_array_equal(states[1][name], array, name)
    assert not np.array_equal(alone(config).state()["critic_ema"], states[0]["critic_ema"])


def test_ranks_learn_what_one_process_does() -> None:
    """Weights differ by the order of float sums only, and not at all from rank to rank."""
    config = small(critic_replay_batches=2, minibatch_size=31, critic_samples_per_step=1.0, exploring_start_steps=9)
    with new_trainer(config) as trainer:
        learn_batches(trainer, 3)
        rollout = trainer.rollout.state()
        assert rollout["forced"].any()

    def work(comm: Communicator) -> dict[str, Any]:
        envs = env_range(4, comm.rank, comm.size)
        rows = make_policy(config).make_rollout(len(envs))
        rows.load_state(cut(rollout, LAYOUT, envs))
        critic = Critic(config, comm, envs, threads_of(1, comm))
        return {"explained": [critic.learn(rows, 0.97, 1e-3) for _ in range(2)], **critic.state()}

    one, (two, other) = work(Serial()), run_ranks(2, work)
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], two[name], err_msg=name)
        size = max(1e-3, float(np.abs(value).max(initial=0)))
        np.testing.assert_allclose(two[name], value, rtol=0, atol=1e-4 * size, err_msg=name)


def test_its_targets_are_those_of_plain_loops() -> None:
    config = small(critic_replay_batches=2)
    with new_trainer(config) as trainer:
        learn_batches(trainer, 4)
        critic, rollout = critic_of(trainer), trainer.rollout
        rng = np.random.default_rng(0)
        rollout.arrays.rewards[:80] = rng.choice([0, 0, 0, 0, 1, -1], (80, 4))
        rollout.arrays.ended[:80] = rng.choice([0, 0, 0, 0, 0, 1], (80, 4))
        rows = np.array([5, 11, 40])[:, None] + np.arange(9)
        values = rng.standard_normal((3, 9, 4)).astype(np.float32)
        targets = critic._returns(rollout, rows[:, :-1], values, 0.97)
        for i, span in enumerate(rows[:, :-1]):
            rewards, ended = rollout.arrays.rewards[span], rollout.arrays.ended[span]
            ref = naive.advantages_of(rewards, ended, values[i], 0.97, Critic.LAMBDA)[1]
            np.testing.assert_allclose(targets[i], ref, rtol=1e-4, atol=1e-5)


def test_it_learns_the_returns_of_its_replay_rows() -> None:
    config = small(critic_replay_batches=2, batch_size=640)
    with new_trainer(config) as trainer:
        learn_batches(trainer, 3)
        rollout, critic = trainer.rollout, alone(config)
        first, end = rollout.history, rollout.rows - 1
        rewards, ended = (array[first:end] for array in (rollout.arrays.rewards, rollout.arrays.ended))
        samples = Samples(rollout.inputs, np.arange(4 * first, 4 * (end + 1)), threads_of(1))
        errors, explained = [], []
        for _ in range(25):
            explained.append(critic.learn(rollout, 0.97, 3e-3))
            values = critic.values(samples).reshape(-1, 4)
            returns = naive.advantages_of(rewards, ended, values, 0.97, 1.0)[1]
            errors.append(float(np.mean((returns - values[:-1]) ** 2)))
        assert critic.state()["critic_updates"] == 25 * 40 and end - first > SPAN
        assert errors[-1] < 0.5 * float(np.var(returns)) and errors[-1] < errors[0]
        assert explained[-1] > max(0.5, explained[0]) and max(explained) <= 1.0


def test_nothing_is_learned_from_steps_of_an_exploring_start() -> None:
    """In no way do the returns of such steps matter, though they count for the steps before them."""
    config = small(critic_replay_batches=2)
    with new_trainer(config) as trainer:
        learn_batches(trainer, 3)
        arrays, states = trainer.rollout.arrays, []
        arrays.ended[:] = 1  # so that no step tells of the next one
        for forced in (0, 2):
            arrays.forced[:, 2:] = forced
            for lost in (False, True):
                arrays.rewards[:, 2:] = -1 if lost else 0
                critic = alone(config)
                critic.learn(trainer.rollout, 0.97, 1e-3)
                states.append(critic.state()["critic_weights"])
    assert (states[0] != states[1]).any()
    np.testing.assert_array_equal(states[2], states[3])


def test_a_critics_state_is_complete() -> None:
    """Taken over by another trainer, after which both learn the same, bit for bit."""
    config = small()
    with new_trainer(config) as trainer:
        learn_batches(trainer, 5)
        saved = {name: array.copy() for name, array in trainer.state().items()}
        learn_batches(trainer, 2)
        expected = trainer.state()
    with new_trainer(config, workers=2) as other:
        other.load_state(saved)
        again = other.state()
        for name, array in saved.items():
            np.testing.assert_array_equal(again[name], array, err_msg=name)
        learn_batches(other, 2)
        comp = other.state()
    assert any(name.startswith("learner.critic_") for name in saved)
    for name, array in expected.items():
        np.testing.assert_array_equal(comp[name], array, err_msg=name)


def test_without_one_nothing_is_kept() -> None:
    with new_trainer(small(critic_replay_batches=0)) as trainer:
        learn_batches(trainer, 3)
        assert ppo_of(trainer)._critic is None
        assert trainer.rollout.rows == trainer.rollout.history + 1
        assert not any(name.startswith("critic") for name in trainer.learner.state())
        assert trainer.learner.statistics["critic_explained_variance"] is None
