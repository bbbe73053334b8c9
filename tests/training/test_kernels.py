"""With an empty cache a subprocess compiles the kernels that learn."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from fastpong.config import make_config
from fastpong.envs.vector_env import VectorEnv
from fastpong.kernels import update
from fastpong.training.trainer import Trainer

if __name__ == "__main__":
    config = make_config("fast", {"num_envs": 2, "batch_size": 32})
    with VectorEnv.of(config, 1) as envs:
        trainer = Trainer(config, envs)
        trainer.start()
        apart = trainer.load_kernels()
        while not trainer.learn_if_due():
            trainer.step()
        stats = update.epoch_half.stats
        print(apart, trainer.learner.updates > 0, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_kernels_that_learn_are_compiled_apart_once(tmp_path: Path) -> None:
    script = tmp_path / "first_update.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True, env=environment
        ).stdout.split()
        for _ in range(2)
    ]
    # In the first run a subprocess compiles them, if there is a core for it; afterwards they come from the cache.
    if len(os.sched_getaffinity(0)) > 1:
        assert said[0] == ["True", "True", "1", "0"]
    assert said[1] == ["False", "True", "1", "0"]
