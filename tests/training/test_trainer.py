"""The promise of the whole: how envs are spread over subprocesses and groups changes no bit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastpong.config import make_config
from fastpong.envs.vector_env import VectorEnv
from fastpong.training.actor import STAGES, Actor
from fastpong.training.trainer import Trainer
from tests.support.trainings import small, trained


@pytest.mark.parametrize(("name", "steps"), [("fast", 400), ("late", 700), ("reinit", 500), ("karpathy", 1250)])
def test_workers_and_groups_change_no_bit(name: str, steps: int) -> None:
    config = small(name)
    one, other = (trained(config, workers, groups, steps) for workers, groups in ((1, 1), (3, 2)))
    assert one.learner.updates >= 2
    np.testing.assert_array_equal(one.policy.weights.flat, other.policy.weights.flat)
    assert one.stats.score == other.stats.score
    assert one.stats.running_reward == other.stats.running_reward
    assert one.learner.statistics == other.learner.statistics
    if name != "karpathy":  # what is tested is part of it
        assert (one.rollout.arrays.forced[: one.rollout.rows] != 0).any(), "no exploring start"
        assert one.learner.statistics["phase"] == ("late" if name == "late" else "early")
        assert one.learner.state()["schedule_began"][1] == (1 if name == "reinit" else 0)


def test_every_game_and_step_is_counted() -> None:
    config = make_config("karpathy", {"num_envs": 3, "batch_games": 1, "hidden_units": 10})
    with VectorEnv.of(config, 1) as envs:
        trainer = Trainer(config, Actor(config, envs))
        trainer.start()
        assert not trainer.learn_if_due()
        used = 0
        for step in range(1, 1201):
            trainer.step()
            assert trainer.stats.steps == 3 * (step - 1)
            first_unused = trainer.rollout.first_unused.copy()
            rows = trainer.rollout.rows
            if trainer.learn_if_due():
                used += 3 * (rows - trainer.rollout.rows) + int((trainer.rollout.first_unused - first_unused).sum())
        assert trainer.stats.games >= 2
        # What no batch has used is still there.
        left = 3 * (trainer.rollout.rows - 1) - int(trainer.rollout.first_unused.sum())
        assert used + left == trainer.stats.steps
        assert all(trainer.sampler.seconds[stage] > 0 for stage in STAGES)


COUNT = """
import sys
from numba.core.dispatcher import Dispatcher
from fastpong.config import make_config
from fastpong.envs.vector_env import VectorEnv
from fastpong.parallel.comm import env_range
from fastpong.parallel.mpi import connect
from fastpong.training.warm_up import load_acting, load_learning
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer

OF_ALGORITHM = {
    "ppo": {"batch_size": 160, "minibatch_size": 50},
    "reinforce": {"batch_games": 1},
}

def signatures():
    modules = [module for name, module in sys.modules.items() if name.startswith("fastpong.kernels")]
    kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    return {str(kernel.py_func): len(kernel.signatures) for kernel in kernels}

def learn(trainer, updates):
    updates += trainer.learner.updates
    while trainer.learner.updates < updates:
        trainer.step()
        trainer.learn_if_due()

if __name__ == "__main__":
    config = make_config(sys.argv[1], {"num_envs": 4})
    config = make_config(sys.argv[1], {"num_envs": 4, **OF_ALGORITHM[config.algorithm]})
    comm = connect()
    with VectorEnv.of(config, 1, env_range(4, comm.rank, comm.size)) as envs:
        trainer = Trainer(config, Actor(config, envs), comm)
        trainer.start()
        load_acting(config)
        load_learning(config, comm.size)
        before = signatures()
        # Minibatches of a batch: ceil(160 / 50), and 3 epochs; late ceil(640 / 200).
        learn(trainer, 12 if config.algorithm == "ppo" else 1)
        assert signatures() == before, (before, signatures())
        if config.algorithm == "ppo":
            assert trainer.learner.statistics["phase"] == "early"
            trainer.learner.begin_late_phase(0)
            learn(trainer, 30)
            assert trainer.learner.statistics["phase"] == "late"
        assert signatures() == before, (before, signatures())
        assert sum(before.values()) >= 6 and max(before.values()) == 1, before
"""


@pytest.mark.parametrize(("preset", "ranks"), [("fast", 1), ("fast", 2), ("karpathy", 1)])
def test_nothing_is_compiled_in_the_loop_and_nothing_twice(preset: str, ranks: int, tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(COUNT)
    command = [sys.executable, str(script), preset]
    if ranks > 1:
        mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert mpiexec, "pip install mpich brings it"
        command = [mpiexec, "-n", str(ranks), *command]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
