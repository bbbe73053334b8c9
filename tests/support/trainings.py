"""Short trainings in this process: settings of small runs, a trainer that has learned, a run with its folder."""

from pathlib import Path
from typing import Any

from fastpong.config import Config, make_config
from fastpong.envs.base import images_of
from fastpong.envs.vector_env import VectorEnv
from fastpong.limits import Limits
from fastpong.runs.folder import RunFolder
from fastpong.show.progress import PlainProgress
from fastpong.training.actor import Actor
from fastpong.training.loop import Result, train
from fastpong.training.trainer import Trainer

_ALL: dict[str, Any] = {"num_envs": 6, "seed": 5, "target_score": 22, "eval_games": 0}
_PPO: dict[str, Any] = {"batch_size": 6 * 128, "minibatch_size": 256}
# Games last 800 steps or more: a few whole ones are needed for an update.
_REINFORCE: dict[str, Any] = {"hidden_units": 32, "batch_games": 2}

SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "fast": ("fast", {**_ALL, **_PPO}),
    "late": ("fast", {**_ALL, **_PPO, "late_win_rate": 0}),
    "reinit": ("fast", {**_ALL, **_PPO, "late_by_step": 1500}),
    "karpathy": ("karpathy", {**_ALL, **_REINFORCE}),
    "ray": ("ray", {**_ALL, **_REINFORCE}),
    "ppg": ("ppg", {**_ALL, "hidden_units": 32, "window_seconds": 0.02}),
    "command": ("karpathy", {"num_envs": 4, "hidden_units": 8, "batch_games": 1, "eval_games": 0}),
}
"""Preset and changes of small runs; ``late`` is late after one batch, ``reinit`` draws its weights anew after two.

``command`` is what `tests.support.commands.SMALL` trains: a test of what comes after a run makes the run in its own
process, which saves the start of a command.
"""


def small(name: str, **changes: Any) -> Config:
    """Return the settings of one of the `SMALL` runs, with changes."""
    preset, base = SMALL[name]
    return make_config(preset, {**base, **changes})


def trained(config: Config, workers: int, groups: int, steps: int) -> Trainer:
    """Return a trainer that has taken so many steps of each env, and learned from them."""
    rules: dict[str, Any] = {"num_actions": config.num_actions, "groups": groups, "images": images_of(config)}
    with VectorEnv(config.num_envs, workers, config.seed, **rules) as envs:
        trainer = Trainer(config, Actor(config, envs))
        trainer.start()
        for _ in range(steps):
            trainer.step()
            trainer.learn_if_due()
        trainer.close()
        return trainer


def run(folder: Path, config: Config, steps: int, workers: int = 2, resume: bool = False) -> Result:
    """Train in a run folder for so many steps over all envs, or go on until there are as many."""
    run_folder = RunFolder(folder)
    if not resume:
        run_folder.create(config, {})
    limits = Limits(steps=steps)
    return train(config, run_folder, PlainProgress(""), workers=workers, resume=resume, limits=limits)
