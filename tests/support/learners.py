"""Small runs of four envs for tests of learners: their settings, and trainers on real steps."""

import contextlib
from collections.abc import Iterator
from typing import Any

from fastpong.config import Config, make_config
from fastpong.envs.vector_env import VectorEnv
from fastpong.learners.ppo import PPO
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer

_SMALL: dict[str, dict[str, Any]] = {
    "fast": {"batch_size": 160, "minibatch_size": 32, "update_epochs": 3, "exploring_start_steps": 0},
    "karpathy": {"hidden_units": 16, "batch_games": 1},
}


def small(preset: str, **changes: Any) -> Config:
    """Settings with which a batch is 40 steps of each env, or one game."""
    return make_config(preset, {"num_envs": 4, "learning_rate": 3e-3, **_SMALL[preset], **changes})


@contextlib.contextmanager
def new_trainer(config: Config, workers: int = 1) -> Iterator[Trainer]:
    """A trainer whose envs have started."""
    with VectorEnv.of(config, workers) as envs:
        trainer = Trainer(config, Actor(config, envs))
        trainer.start()
        yield trainer
        trainer.close()


@contextlib.contextmanager
def after_41_steps(config: Config) -> Iterator[Trainer]:
    """With one step of each env more than makes a batch."""
    with new_trainer(config) as trainer:
        for _ in range(41):
            trainer.step()
        yield trainer


def learn_batches(trainer: Trainer, batches: int) -> None:
    """Step until so many batches more were learned from."""
    while batches:
        trainer.step()
        batches -= trainer.learn_if_due()


def ppo_of(trainer: Trainer) -> PPO:
    """The trainer's learner."""
    assert isinstance(trainer.learner, PPO)
    return trainer.learner
