"""The command line: its help, what it refuses and in which words, exit codes, and what it loads."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fastpong import __version__, config
from fastpong.config_sources import read_toml
from tests.support.commands import SMALL, fastpong, here, one_line
from tests.support.trainings import run as train_here
from tests.support.trainings import small

COMMANDS = ("train", "eval", "play", "bench", "plot", "settings", "presets", "doctor", "export")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "129"], "128 envs"),
        (["--workers", "0"], "'--workers'"),
        (["--envs", "0"], "envs must be 1"),
        (["--envs", "-3"], "envs must be 1"),
        (["--envs", "few"], "integer"),
        (["--preset", "best"], "there is no preset 'best'"),
        (["--preset", "karpaty"], "did you mean 'karpathy'?"),
        (["--set", "gamma=2"], "gamma must be 0 … 1"),
        (["--set", "gamma"], "key=value"),
        (["--envs", "8", "--set", "num_envs=4"], "num_envs is given twice, as 8 and as 4"),
        (["--set", "hidden_unit=64"], "did you mean 'hidden_units'?"),
        (["--batch-games", "3"], "batch_games is a setting of reinforce"),
        (["--window-seconds", "3"], "window_seconds is a setting of reinforce"),
        (["--preset", "ppg", "--batch-games", "3"], "batch_games is a setting of runs without window_seconds"),
        (["--preset", "ray", "--set", "update_epochs=7"], "update_epochs is a setting of ppo"),
        (["--steps", "0"], "'--steps'"),
        (["--minutes", "0"], "'--minutes'"),
        (["--config", "missing.toml"], "cannot read missing.toml"),
        (["--resume"], "there is no run"),
        (["--resume", "--run", "nothing"], "there is no run in nothing"),
        (["--fast"], "--fast"),
        (["--progress", "bar"], "progress is one of live, lines, none"),
        (["--log", "csv"], "log is tensorboard"),
        (["--engine", "stella"], "the engine is one of"),
        (["--gamma", "0.9"], "there is no option --gamma: use --set gamma=0.9"),
        (["--learning-rate=0.1"], "there is no option --learning-rate: use --set learning_rate=0.1"),
        (["--set", "lr=0.1"], "there is no setting 'lr': did you mean 'learning_rate'?"),
        (["--set", "n_steps=128"], "did you mean 'batch_size'?"),
        (["--set", "gravity=1"], "there is no setting 'gravity': `fastpong settings` lists them"),
        (["--minutes", "inf"], "'--minutes'"),
        (["--run", ""], "--run is empty"),
        (["--config="], "--config is empty"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_nothing(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = here("train", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in one_line(done.stderr)
    assert not os.listdir(tmp_path)


def test_a_process_of_its_own_says_no_more(tmp_path: Path) -> None:
    for arguments in (["train", "--set", "gamma=2"], ["train", "--resume"], ["settings", "gamma"]):
        alone, inside = fastpong(*arguments, cwd=tmp_path), here(*arguments, cwd=tmp_path)
        assert (alone.returncode, alone.stdout, alone.stderr) == (inside.returncode, inside.stdout, inside.stderr)


@pytest.mark.parametrize(
    "arguments", [["play", "--speed", "inf"], ["play", "--speed", "101"], ["bench", "--seconds", "inf"]]
)
def test_numbers_have_an_upper_end(arguments: list[str], tmp_path: Path) -> None:
    done = here(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and f"'{arguments[1]}'" in one_line(done.stderr)


def test_flags_go_before_the_environment_and_that_before_files(tmp_path: Path) -> None:
    """What would be trained is printed as a config.toml, which repeats it."""
    (tmp_path / "own.toml").write_text("gamma = 0.5\nbatch_size = 400\nhidden_units = 128\n")
    variables = {"FASTPONG_GAMMA": "0.6", "FASTPONG_BATCH_SIZE": "500", "FASTPONG_NUM_ENVS": "9"}
    command = ["train", "--config", "own.toml", "--set", "gamma=0.7", "--envs", "4", "--print-config"]
    done = here(*command, cwd=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    (tmp_path / "printed.toml").write_text(done.stdout)
    assert sorted(os.listdir(tmp_path)) == ["own.toml", "printed.toml"]
    changes, about = read_toml(tmp_path / "printed.toml")
    wanted = {"gamma": 0.7, "batch_size": 500, "hidden_units": 128, "num_envs": 4}
    assert {name: changes[name] for name in wanted} == wanted
    assert about == {"fastpong": __version__}
    again = here("train", "--config", "printed.toml", "--print-config", cwd=tmp_path)
    assert again.stdout == done.stdout
    wrong = here("train", cwd=tmp_path, FASTPONG_GAMA="1")
    assert wrong.returncode == 2 and "FASTPONG_GAMA in the environment: there is no setting" in one_line(wrong.stderr)


def test_a_run_for_tensorboard(tmp_path: Path) -> None:
    done = here("train", *SMALL, "--steps", "4000", "--run", "run", "--log", "tensorboard", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "run").glob("events.out.tfevents.*")
    data = file.read_bytes()
    for key in ("charts/episodic_return", "charts/SPS", "losses/entropy"):
        assert key.encode() in data


def test_evaluation_prints_the_contracts_numbers(tmp_path: Path) -> None:
    train_here(tmp_path / "run", small("command"), 400)
    done = fastpong("eval", "run", "--games", "2", "--seed", "5", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(one_line(done.stdout))
    names = {"agent", "seed", "sticky", "greedy", "games", "mean", "ci95_low", "ci95_high", "wins", "steps", "scores"}
    assert set(result) == names and result["ci95_low"] is result["ci95_high"] is None  # of two games
    assert (result["agent"], result["seed"], result["sticky"], result["greedy"]) == ("run", 5, 0.25, True)
    assert result["games"] == 2 == len(result["scores"]) and result["mean"] == sum(result["scores"]) / 2
    assert result["steps"] > 1000
    done = here("eval", "run", "--games", "2", "--sticky", "0", cwd=tmp_path)
    score, how = done.stdout.splitlines()
    assert done.returncode == 0 and score.startswith("mean score -") and "the same game every time" in done.stderr
    assert how == "run, greedy actions, sticky 0, seed 0"
    done = here("eval", "nothing.npz", cwd=tmp_path)
    assert done.returncode == 1 and "there is no checkpoint nothing.npz" in one_line(done.stderr)
    assert here("eval", "run", "--games", "0", cwd=tmp_path).returncode == 2


def test_what_steps_the_games_can_be_chosen(engine: str, tmp_path: Path) -> None:
    for command in (["eval", "--games", "1"], ["play", "--terminal", "--steps", "9"]):
        assert here(*command, "--engine", engine, cwd=tmp_path).returncode == 0


def test_an_unknown_engine_is_told(tmp_path: Path) -> None:
    for command in (["eval"], ["play", "--terminal"], ["bench"]):
        done = here(*command, "--engine", "stella", cwd=tmp_path)
        assert done.returncode == 2 and "not 'stella'" in one_line(done.stderr)


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = fastpong("train", "--envs", "0", "--debug", cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_version_help_and_what_they_load(tmp_path: Path) -> None:
    assert fastpong("--version", cwd=tmp_path).stdout.strip() == f"fastpong {__version__}"
    heavy = "any(name in sys.modules for name in ('numba', 'gymnasium', 'numpy'))"
    script = f"import sys, fastpong.main; sys.exit({heavy})"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
    script = "import sys, fastpong.envs.vector_env, fastpong.envs.ale; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
    overview = here("--help", cwd=tmp_path).stdout
    for command in COMMANDS:
        assert re.search(rf"^\s+{command}\b", overview, re.MULTILINE)
        page = here(command, "--help", cwd=tmp_path)
        assert page.returncode == 0 and page.stdout.partition("Examples:")[2].count("fastpong ") == 2
        assert ("FASTPONG_GAMMA=0.9" in page.stdout) == (command == "train")
    assert here(cwd=tmp_path).returncode == 2
    assert here("-h", cwd=tmp_path).stdout == overview and "..." not in overview.partition("Commands:")[2]


def test_settings_and_presets_are_listed(tmp_path: Path) -> None:
    listed = here("settings", cwd=tmp_path).stdout
    for name, setting in config.settings().items():
        assert re.search(rf"^  {name} = ", listed, re.MULTILINE) and setting.metadata["help"] in listed
    assert here("settings", "clip_low", cwd=tmp_path).stdout.splitlines()[0] == "  clip_low = 0.2  (0 … 1)"
    done = here("settings", "clip_lov", cwd=tmp_path)
    assert done.returncode == 2 and "did you mean 'clip_low'?" in one_line(done.stderr)
    presets = here("presets", cwd=tmp_path).stdout
    assert [line for line in presets.splitlines() if line[0] != " "] == list(config.PRESETS)
    assert "  hidden_units = 200" in presets
    complete = {
        **os.environ,
        "_FASTPONG_COMPLETE": "complete_bash",
        "COMP_WORDS": "fastpong settings cli",
        "COMP_CWORD": "2",
    }
    script = "from fastpong.cli import app; app(prog_name='fastpong')"
    done = subprocess.run([sys.executable, "-c", script], env=complete, capture_output=True, text=True)
    assert done.stdout.split() == ["clip_low", "clip_high"]


def test_a_launchers_nonsense_is_one_line(tmp_path: Path) -> None:
    done = here("doctor", cwd=tmp_path, PMI_RANK="x", PMI_SIZE="2")
    assert done.returncode == 2 and "PMI_RANK" in one_line(done.stderr)


def test_a_strangers_names_and_settings_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[about]\nfastpong = "\\u001b]0;x\\u0007\\u202e"\n')
    (tmp_path / "d.toml").write_text('num_envs = "\\n\\n-5\\n"\n')
    name = "a\x1b[31m\n\u2066b"
    (tmp_path / name).mkdir()
    configs = (["train", "--config", "c.toml"], ["train", "--config", "d.toml"])
    for command in (*configs, ["train", f"--{name}"], ["eval", name], ["plot", name]):
        done = here(*command, cwd=tmp_path)
        assert done.returncode in (1, 2) and one_line(done.stderr).isprintable() and not done.stdout
    done = fastpong("train", *SMALL, "--steps", "20", "--run", name, cwd=tmp_path)
    assert done.returncode == 0 and all(map(str.isprintable, (done.stdout + done.stderr).split("\n")))


def test_a_variable_that_a_library_refuses_is_named(tmp_path: Path) -> None:
    done = fastpong("eval", "--games", "1", cwd=tmp_path, env={**os.environ, "NUMBA_NUM_THREADS": "0"})
    assert done.returncode == 1 and one_line(done.stderr) == (
        "fastpong: numba cannot be imported (Number of threads specified must be > 0.): "
        "look at NUMBA_NUM_THREADS in the environment"
    )


def test_what_the_system_refuses_has_a_subject(tmp_path: Path) -> None:
    long = "x" * 256
    done = here("eval", long, cwd=tmp_path)
    assert done.returncode == 1 and one_line(done.stderr).endswith(f" {long}: File name too long")
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))"
    limit = f"{few}; from fastpong.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", limit, "eval", "--games", "1"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1 and "too many open files: raise the limit, which ulimit -n shows" in done.stderr
    gone = f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -P -m fastpong plot run"
    done = subprocess.run(["bash", "-c", gone], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "fastpong: the current directory was deleted" in done.stderr.splitlines()[-1]
