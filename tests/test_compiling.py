"""Kernels are compiled once for all, before the first step, and the cache survives two runs that fill it at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastpong

COUNT = """
import sys
from numba.core.dispatcher import Dispatcher
from fastpong.config import make_config
from fastpong.games import Games
from fastpong.trainer import Trainer

def signatures():
    modules = [module for name, module in sys.modules.items() if name.startswith("fastpong.kernels")]
    kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    return {str(kernel.py_func): len(kernel.signatures) for kernel in kernels}

if __name__ == "__main__":
    config = make_config(sys.argv[1], {"envs": 4, "batch_steps": 160, "minibatch": 50, "batch_games": 1})
    with Games(4, 1, actions=config.actions) as games:
        trainer = Trainer(config, games)
        trainer.start()
        trainer.warm_up()
        before = signatures()
        for _ in range(1200 if config.algorithm == "reinforce" else 100):
            trainer.advance()
            trainer.learn_if_due()
        assert trainer.learner.updates > 0
        assert signatures() == before, (before, signatures())
        assert sum(before.values()) >= 6 and max(before.values()) == 1, before
"""


APART = """
import os
from fastpong.compiling import compile_apart
from fastpong.config import changed, make_config
from fastpong.games import Games
from fastpong.kernels import passes
from fastpong.policy import make_policy
from fastpong.ppo import PPO
from fastpong.trainer import Trainer

if __name__ == "__main__":
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    assert compile_apart("ppo") is None  # nothing to be gained
    os.sched_setaffinity(0, cores)
    if len(cores) > 1:
        config = make_config("fast", {"envs": 4, "batch_steps": 160, "minibatch": 50, "critic": 0})
        with Games(4, 1, actions=config.actions) as games:
            trainer = Trainer(config, games)
            trainer.start()
            trainer.warm_up(meanwhile=True)
            assert trainer.compiling
            trainer.advance()
            assert trainer.compiling  # the games do not wait for it
            while not trainer.learn_if_due():
                trainer.advance()
            assert not trainer.compiling and trainer.learner.updates
        assert compile_apart("ppo") is None
        assert compile_apart("critic").wait() == 0
        assert compile_apart("critic") is None
        config = changed(make_config(), {"critic": 1})
        learner = PPO(config, make_policy(config))
        learner.warm_up()
        learner.warm_up_critic()
        for kernel in passes.half_of_pass, passes.half_of_value_pass:
            stats = kernel.stats
            assert sum(stats.cache_hits.values()) == 1 and not stats.cache_misses, stats
"""


def test_what_learns_is_compiled_by_a_subprocess(tmp_path: Path) -> None:
    script = tmp_path / "apart.py"
    script.write_text(APART)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Numba compiles once more where an argument is a constant: that would be in the second file of a kernel.
    files = sorted(file.name for file in (tmp_path / "cache").rglob("*.nbc"))
    assert len(files) > 20 and not [name for name in files if not name.endswith(".1.nbc")]


@pytest.mark.parametrize("preset", ["fast", "karpathy"])
def test_nothing_is_compiled_in_the_loop_and_nothing_twice(preset: str, tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(COUNT)
    done = subprocess.run([sys.executable, str(script), preset], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_two_runs_may_fill_the_cache_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "fastpong", "train", "--envs", "2", "--workers", "1", "--steps", "30"]
    options = ["--preset", "karpathy", "--set", "eval_games=0"]
    runs = [
        subprocess.Popen([*command, *options, "--run", str(tmp_path / name)], env=environment, stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    for run in runs:
        assert run.communicate(timeout=120)[1] is not None and run.returncode == 0
    files = sorted((tmp_path / "cache").rglob("*.nb?"))
    assert any(file.suffix == ".nbi" for file in files)
    times = [file.stat().st_mtime_ns for file in files]
    subprocess.run([*command, *options, "--run", str(tmp_path / "three")], env=environment, check=True)
    assert sorted((tmp_path / "cache").rglob("*.nb?")) == files
    assert [file.stat().st_mtime_ns for file in files] == times  # nothing was compiled again


def test_a_read_only_install_without_a_home_compiles_at_every_start(tmp_path: Path) -> None:
    package = tmp_path / "fastpong"
    shutil.copytree(Path(fastpong.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").touch()  # where a folder would have to be: nothing can be kept here
    environment = {**os.environ, "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    script = (
        "from fastpong.kernels import optimiser;"
        "print(optimiser.__file__, optimiser.rates_of(1.0, 0.5, 0.5, 0.25, 1).epsilon)"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == [str(package / "kernels" / "optimiser.py"), "0.25"], done.stderr


def test_the_cache_is_the_users_and_leaves_nothing_beside_the_source(tmp_path: Path) -> None:
    # pip would not remove it, and a left-over folder hides the editable install that comes next.
    package = tmp_path / "fastpong"
    shutil.copytree(Path(fastpong.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    script = (
        "from fastpong.kernels import optimiser; from fastpong.kernels.cache import cache_folder;"
        "optimiser.rates_of(1.0, 0.5, 0.5, 0.25, 1); print(cache_folder())"
    )

    def folder() -> Path:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return Path(done.stdout.strip())

    first = folder()
    assert first.is_relative_to(tmp_path / "cache") and list(first.rglob("*rates_of*.nbc"))
    assert not list(package.rglob("*.nb?"))
    with (package / "noise.py").open("a") as file:  # its hash is compiled into the kernels
        file.write("# changed\n")
    assert folder() != first


def test_numba_keeps_what_others_compile_where_it_did() -> None:
    script = (
        "from numba import config, njit; before = config.CACHE_DIR; import fastpong.kernels.ppo;"
        "assert config.CACHE_DIR == before"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
