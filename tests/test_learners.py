"""Both learners on real steps: they change the weights for the better, and their states are complete."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.config import Config, changed, make_config
from fastpong.games import Games
from fastpong.kernels import meeting
from fastpong.ppo import PPO
from fastpong.reinforce import Reinforce
from fastpong.trainer import Trainer


def small(preset: str) -> Config:
    changes = {
        "envs": 4,
        "hidden": 16,
        "batch_games": 1,
        "batch_steps": 160,
        "minibatch": 32,
        "epochs": 3,
        "standardise": "batch",
        "held_steps": 0,
    }
    return make_config(preset, {**changes, "learning_rate": 3e-3})


@contextlib.contextmanager
def after_41_steps(config: Config) -> Iterator[Trainer]:
    """Four games, with one step more than makes a batch."""
    with Games(4, 1, actions=config.actions) as games:
        trainer = Trainer(config, games)
        trainer.start()
        for _ in range(41):
            trainer.advance()
        yield trainer


@pytest.mark.parametrize(("preset", "kind"), [("fast", PPO), ("karpathy", Reinforce)])
def test_warming_up_changes_nothing(preset: str, kind: type) -> None:
    with Games(4, 1) as games:
        trainer = Trainer(small(preset), games)
        assert isinstance(trainer.learner, kind)
        before = trainer.policy.weights.copy()
        state_before = {name: array.copy() for name, array in trainer.learner.state().items()}
        trainer.warm_up()
        np.testing.assert_array_equal(trainer.policy.weights, before)
        learner = trainer.learner
        assert learner.updates == 0
        assert not (learner.gradient if isinstance(learner, Reinforce) else learner.adam._buffer).any()
        state = trainer.learner.state()
        assert state.keys() == state_before.keys()
        for name, array in state.items():
            np.testing.assert_array_equal(array, state_before[name], name)
            assert not array.any() or name.startswith(("schedule", "critic")), name


def test_ppo_learns_every_so_many_steps_from_all_of_them() -> None:
    config = small("fast")
    with Games(4, 1, actions=3) as games:
        trainer = Trainer(config, games)
        trainer.start()
        learned = []
        for step in range(1, 122):
            trainer.advance()
            if trainer.learn_if_due():
                learned.append(step)
                # The step in flight, and what it looks back at.
                assert trainer.rollout.rows == 1 + max(config.frames - 1, config.past_actions)
        assert learned == [41, 81, 121]
        assert trainer.learner.updates == 3 * 3 * 5
        statistics = trainer.learner.statistics
        assert 0 < statistics["entropy"] <= np.log(3) + 1e-6 and statistics["kl"] >= 0
        assert 3e-3 / 1.1**2 <= statistics["learning_rate"] <= 3e-3


@pytest.mark.parametrize(("kl", "number"), [(1e-12, 1), (10.0, 3), (0.0, 3)])
def test_a_pass_that_has_moved_the_policy_too_far_is_the_last(kl: float, number: int) -> None:
    config = changed(small("fast"), {"kl": kl})
    with after_41_steps(config) as trainer:
        trainer.learner.learn(trainer.rollout, trainer.tally)
        assert trainer.learner.updates == number * 5


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_two_threads_that_meet_learn_what_one_does(share: float) -> None:
    config = changed(
        small("fast"), {"pass_share": share, "minibatch": 31}
    )  # so that halves differ, and the last is short
    with after_41_steps(config) as trainer, ThreadPoolExecutor(1) as pool:
        learner, weights = trainer.learner, trainer.policy.weights
        assert isinstance(learner, PPO)
        before, learned = weights.copy(), []
        for other in (pool, None, pool):
            learner.close()
            weights[:] = before
            learner = trainer.learner = PPO(config, trainer.policy)
            learner.adam.pool = other
            trainer.rollout.begins[:] = 0
            learner.learn(trainer.rollout, trainer.tally)
            assert learner.updates == 3 * 6
            learned.append({"weights": weights.copy(), **learner.state(), **learner.statistics})
        learner.close()
        for name in learned[0]:
            np.testing.assert_array_equal(learned[1][name], learned[0][name], name)
            np.testing.assert_array_equal(learned[2][name], learned[0][name], name)
        assert not np.array_equal(weights, before)


@pytest.mark.parametrize("which", [0, 1])
def test_a_thread_does_not_wait_for_one_that_fails(which: int) -> None:
    with after_41_steps(small("fast")) as trainer, ThreadPoolExecutor(1) as pool:
        assert isinstance(trainer.learner, PPO)
        adam = trainer.learner.adam
        adam.pool = pool

        def work(half: int, place: npt.NDArray[np.int64], *_: object) -> bool:
            if half == which:
                raise KeyboardInterrupt
            arrived.append(meeting.meet(place, half, 1))
            return True

        arrived: list[bool] = []
        with pytest.raises(KeyboardInterrupt):
            adam.run(work, 1, 0.0)
        assert arrived == [False]


@pytest.mark.parametrize("preset", ["fast", "karpathy"])
def test_rewarded_actions_become_likelier(preset: str) -> None:
    """The same screens twice: going up was rewarded in one game, going down in the other."""
    config = small(preset)
    with after_41_steps(config) as trainer:
        rollout = trainer.rollout
        rollout.actions[:40] = [0, 1, 0, 1]
        rollout.rewards[:40] = [1, -1, 1, -1]
        rollout.ended[39] = 1
        trainer.tally.batch_games = 1
        rollout.log_probs[:40] = -np.log(config.actions)
        before = probability_of_up(trainer)
        for _ in range(3):
            trainer.learner.learn(rollout, trainer.tally)
            rollout.begins[:] = 0
        assert probability_of_up(trainer) > before + 0.02


def weights_after(lost: int, held: int) -> np.ndarray:
    """Learn from 40 steps of four games; two of them were held, or not, and lost so often."""
    config = small("fast")
    with after_41_steps(config) as trainer:
        rollout = trainer.rollout
        rollout.rewards[10, :2] = [1, -1]
        rollout.rewards[10 : 10 + lost, 2:] = -1
        rollout.held[:40, 2:] = held
        trainer.learner.learn(rollout, trainer.tally)
        return trainer.policy.weights


def test_nothing_is_learned_from_steps_of_a_held_paddle() -> None:
    np.testing.assert_array_equal(weights_after(0, 3), weights_after(20, 3))
    assert (weights_after(0, 0) != weights_after(20, 0)).any()


def test_points_of_a_run_begin_held_until_it_has_faded() -> None:
    config = make_config("fast", {"envs": 4, "hidden": 16, "held_steps": 6, "held_until": 80})
    with Games(4, 1, actions=config.actions) as games:
        trainer = Trainer(config, games)
        trainer.start()
        for _ in range(100):
            trainer.advance()
        held, actions = trainer.rollout.held[:100], trainer.rollout.actions[:100]
        assert held[0].any() and (np.abs(held[0]) <= 6).all() and not held[6:].any()
        assert (actions[held > 0] == 0).all() and (actions[held < 0] == 1).all()


def probability_of_up(trainer: Trainer) -> float:
    """Mean over the rows, from many draws."""
    rollout, ups = trainer.rollout, 0
    for step in range(2000):
        row = step % 40
        actions = rollout.actions[row].copy()
        trainer.policy.act(rollout, row, np.arange(4), step)
        ups += int((rollout.actions[row] == 0).sum())
        rollout.actions[row] = actions
    return ups / 8000
