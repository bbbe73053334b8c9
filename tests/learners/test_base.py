"""What both learners do: they change the weights for the better, and their states are complete."""

import numpy as np
import pytest

from fastpong.config import Config
from fastpong.learners.base import Learner, make_learner
from fastpong.learners.ppo import PPO
from fastpong.learners.reinforce import Reinforce
from fastpong.policy import ConvPolicy, MlpPolicy, Policy, make_policy
from fastpong.training.trainer import Trainer
from tests.support.learners import after_41_steps, small

PRESETS = ["fast", "karpathy"]


def make_agent(config: Config) -> tuple[Policy, Learner]:
    policy = make_policy(config)
    return policy, make_learner(config, policy)


@pytest.mark.parametrize(("preset", "kinds"), [("fast", (ConvPolicy, PPO)), ("karpathy", (MlpPolicy, Reinforce))])
def test_a_new_learner_has_learned_nothing(preset: str, kinds: tuple[type, type]) -> None:
    policy, learner = make_agent(small(preset))
    assert isinstance(policy, kinds[0]) and isinstance(learner, kinds[1])
    assert learner.updates == 0 and learner.statistics == {}
    for name, array in learner.state().items():
        assert not array.any() or name.startswith("schedule"), name
    learner.close()


@pytest.mark.parametrize("preset", PRESETS)
def test_rewarded_actions_become_likelier(preset: str) -> None:
    """Every other step of each env went up, and won; those in between went down, and lost."""
    config = small(preset)
    with after_41_steps(config) as trainer:
        arrays = trainer.rollout.arrays
        arrays.actions[:40] = (np.arange(40)[:, None] + np.arange(4)) % 2
        arrays.rewards[:40] = 1 - 2 * arrays.actions[:40].astype(np.int8)
        arrays.ended[39] = 1
        trainer.stats.batch_games = 1
        arrays.log_probs[:40] = -np.log(config.num_actions)
        before = probability_of_up(trainer)
        for _ in range(3):
            trainer.learner.learn(trainer.rollout, trainer.stats)
            trainer.rollout.first_unused[:] = 0
        assert probability_of_up(trainer) > before + 0.02


def probability_of_up(trainer: Trainer) -> float:
    """Mean over the rows, from many draws."""
    rollout, ups = trainer.rollout, 0
    arrays = rollout.arrays
    for step in range(2000):
        row = step % 40
        actions, log_probs = arrays.actions[row].copy(), arrays.log_probs[row].copy()
        ups += int((trainer.policy.act(rollout.inputs, row * rollout.num_envs, np.arange(4), step) == 0).sum())
        arrays.actions[row], arrays.log_probs[row] = actions, log_probs
    return ups / 8000


@pytest.mark.parametrize("preset", PRESETS)
def test_a_learners_state_is_complete(preset: str) -> None:
    """Taken over by another learner after a batch: both then learn the same, bit for bit."""
    config = small(preset)
    with after_41_steps(config) as trainer:
        trainer.rollout.arrays.rewards[:40:7] = [1, -1, -1, 1]
        rollout, stats = trainer.rollout.state(), trainer.stats
    (policy, learner), (other_policy, other) = make_agent(config), make_agent(config)

    def learn(agent: tuple[Policy, Learner]) -> None:
        rows = agent[0].make_rollout(4)
        rows.load_state(rollout)
        agent[1].learn(rows, stats)

    learn((policy, learner))
    other_policy.weights.load(policy.weights.arrays)
    other.load_state({name: array.copy() for name, array in learner.state().items()})
    before = policy.weights.flat.copy()
    for agent in ((policy, learner), (other_policy, other)):
        learn(agent)
        agent[1].close()
    assert other.updates == learner.updates > 1 and (policy.weights.flat != before).any()
    np.testing.assert_array_equal(other_policy.weights.flat, policy.weights.flat)
    assert other.statistics == learner.statistics
    state = other.state()
    for name, array in learner.state().items():
        np.testing.assert_array_equal(state[name], array, err_msg=name)
