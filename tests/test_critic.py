"""The critic on real steps: it learns what comes, from what is remembered, and its state is complete."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fastpong.config import Config, changed, make_config
from fastpong.critic import SPAN, Critic
from fastpong.games import Games
from fastpong.minibatch import views_of
from fastpong.ranks import Alone
from fastpong.trainer import Trainer
from tests import naive


def small(**changes: object) -> Config:
    """Four games that win at once, by decree, so that the critic begins with the first batch."""
    settings = {
        "envs": 4, "hidden": 16, "batch_steps": 160, "minibatch": 64, "epochs": 1, "held_steps": 0,
        "critic": 3, "critic_rate": 3e-3, "sharpen_latest": 0,
    }  # fmt: skip
    return make_config("fast", {**settings, **changes})


def play(trainer: Trainer, batches: int) -> None:
    while batches:
        trainer.advance()
        batches -= trainer.learn_if_due()


def test_it_remembers_so_many_batches_and_then_judges() -> None:
    config = small()
    with Games(4, 1, actions=3) as games:
        trainer = Trainer(config, games)
        critic = trainer.learner.critic  # type: ignore[union-attr]
        assert critic is not None
        trainer.start()
        # The first batch is over before the agent has won, and of its rows only the history of the second one is left.
        for batch, rows in ((1, 0), (2, 40), (3, 80), (4, 120), (5, 120), (6, 120)):
            play(trainer, 1)
            rollout = trainer.rollout
            assert critic.batches == batch - 1 and critic.ready == (batch > 3)
            assert int(rollout.begins[0]) == rollout.history + rows
            assert rollout.rows == int(rollout.begins[0]) + 1


def test_two_threads_that_meet_learn_what_one_does() -> None:
    config = changed(small(critic=2), {"minibatch": 31, "critic_visits": 3.0})
    with Games(4, 1, actions=3) as games, ThreadPoolExecutor(1) as pool:
        trainer = Trainer(config, games)
        trainer.start()
        play(trainer, 4)
        states = []
        for threads in (pool, None):
            critic = Critic(config, Alone(), range(4), threads)
            for _ in range(2):
                critic.learn(trainer.rollout, 0.97, 1e-3)
            assert critic.adam.updates > 2
            states.append(critic.state())
        for name, array in states[0].items():
            np.testing.assert_array_equal(states[1][name], array, name)
        fresh = Critic(config, Alone(), range(4), None).state()
        assert not np.array_equal(fresh["critic_means"], states[0]["critic_means"])


def test_its_targets_are_those_of_plain_loops() -> None:
    config = small(critic=2)
    with Games(4, 1, actions=3) as games:
        trainer = Trainer(config, games)
        trainer.start()
        play(trainer, 4)
        critic, rollout = trainer.learner.critic, trainer.rollout  # type: ignore[union-attr]
        assert critic is not None
        rng = np.random.default_rng(0)
        rollout.rewards[:80] = rng.choice([0, 0, 0, 0, 1, -1], (80, 4))
        rollout.ended[:80] = rng.choice([0, 0, 0, 0, 0, 1], (80, 4))
        rollout.planned[:80] = rng.choice([0, 0, 1], (80, 4))
        rows = np.array([5, 11, 40])[:, None] + np.arange(9)
        values = rng.standard_normal((3, 9, 4)).astype(np.float32)
        targets = critic._targets(rollout, rows[:, :-1], values, 0.97)
        for i, stretch in enumerate(rows[:, :-1]):
            ref = naive.advantages_of(
                rollout.rewards[stretch], rollout.ended[stretch], values[i], 0.97, config.critic_lambda,
                np.where(rollout.planned[stretch] > 0, np.exp(rollout.log_probs[stretch]), 1.0),
            )[1]  # fmt: skip
            np.testing.assert_allclose(targets[i], ref, rtol=1e-4, atol=1e-5)


def test_it_learns_the_returns_of_what_it_remembers() -> None:
    config = small(critic=2, batch_steps=640)
    with Games(4, 1, actions=3) as games:
        trainer = Trainer(config, games)
        trainer.start()
        play(trainer, 3)
        rollout = trainer.rollout
        critic = Critic(config, Alone(), range(4), None)
        first, end = rollout.history, rollout.rows - 1
        values, errors = np.zeros((end - first + 1, 4), np.float32), []
        for _ in range(25):
            critic.learn(rollout, 0.97, 3e-3)
            samples = np.arange(4 * first, 4 * (end + 1))
            values = critic.values(
                rollout, views_of(rollout, samples, config.frames, critic.adam.both), samples
            ).reshape(-1, 4)
            returns = naive.advantages_of(rollout.rewards[first:end], rollout.ended[first:end], values, 0.97, 1.0)[1]
            errors.append(float(np.mean((returns - values[:-1]) ** 2)))
        assert critic.adam.updates == 25 * 40 and end - first > SPAN
        assert errors[-1] < 0.5 * float(np.var(returns)) and errors[-1] < errors[0]


def test_a_critics_state_is_complete() -> None:
    """Taken over by another trainer, after which both learn the same, bit for bit."""
    config = small()
    states = []
    with Games(4, 1, actions=3) as games:
        trainer = Trainer(config, games)
        trainer.start()
        play(trainer, 5)
        saved = {name: array.copy() for name, array in trainer.state().items()}
        play(trainer, 2)
        states.append(trainer.state())
    with Games(4, 2, actions=3) as games:
        other = Trainer(config, games)
        other.load_state(saved)
        again = other.state()
        for name, array in saved.items():
            np.testing.assert_array_equal(again[name], array, err_msg=name)
        play(other, 2)
        states.append(other.state())
    assert any(name.startswith("learner.critic_") for name in saved)
    for name, array in states[0].items():
        np.testing.assert_array_equal(states[1][name], array, err_msg=name)


def test_without_one_nothing_is_kept() -> None:
    with Games(4, 1, actions=3) as games:
        trainer = Trainer(changed(small(), {"critic": 0}), games)
        trainer.start()
        play(trainer, 3)
        assert trainer.learner.critic is None and trainer.rollout.keep == 0  # type: ignore[union-attr]
        assert trainer.rollout.rows == trainer.rollout.history + 1
