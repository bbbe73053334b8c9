"""With an empty cache a subprocess compiles the kernels that learn; and bits do not depend on the processor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding


def runs_x86_64_v3() -> bool:
    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in ("avx2", "fma", "bmi2", "f16c", "movbe"))


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


UPDATE = """
import zlib
from fastpong.config import make_config
from fastpong.envs.base import LocalEnv
from fastpong.training.trainer import Trainer

if __name__ == "__main__":
    config = make_config("fast", {"num_envs": 1, "batch_size": 128, "minibatch_size": 64, "update_epochs": 2})
    trainer = Trainer(config, LocalEnv(config))
    trainer.start()
    while not trainer.learn_if_due():
        trainer.step()
    print(*(zlib.crc32(array.tobytes()) for array in trainer.state().values()))
"""


@pytest.mark.skipif(not runs_x86_64_v3(), reason="the code that is compared is for x86-64-v3")
def test_bits_do_not_depend_on_the_model_of_the_processor(tmp_path: Path) -> None:
    script = tmp_path / "update.py"
    script.write_text(UPDATE)
    # LLVM orders what it may by a model's vectors and latencies. The plainest model and this processor's own:
    said = []
    for model in ({"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}, {}):
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True, env={**os.environ, **model}
        )
        said.append(done.stdout)
    assert said[0] == said[1] and len(said[0].split()) > 20
