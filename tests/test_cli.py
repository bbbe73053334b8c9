"""The command line as a user meets it: real subprocesses, their output, exit codes and files."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fastpong import __version__
from fastpong.checkpoint import RunFolder

SMALL = ["--preset", "karpathy", "--envs", "4", "--workers", "2", "--batch-games", "1", "--set", "hidden=8"]
SMALL += ["--set", "eval_games=0"]


def fastpong(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fastpong", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, **options)


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fastpong", *arguments]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The game subprocesses: the fork server's children."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if child.ppid() != process.pid]


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    return lines[0]


def test_a_run_and_its_files(tmp_path: Path) -> None:
    done = fastpong("train", *SMALL, "--steps", "5000", "--set", "log_steps=1000", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(one_line(done.stdout))
    assert result["reason"] == "steps" and result["steps"] == 5000
    run = RunFolder(tmp_path / result["run"])
    assert run.path == tmp_path / "runs" / "karpathy-1"
    assert len(run.checkpoints()) == 1 and run.best.exists()
    assert run.config().hidden == 8
    toml = run.path.joinpath("config.toml").read_text()
    for word in ("numpy", "numba", "gymnasium", "ale_py", "python", __version__):
        assert word in toml
    assert "\x1b" not in done.stderr  # no terminal: plain lines
    assert len(re.findall(r"steps .*/s .*games  score", done.stderr)) == 5

    more = fastpong("train", "--resume", "--steps", "6000", "--target", "20", "--set", "eval_games=1", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    stopped, best = more.stdout.splitlines()
    assert "6,000 steps" in stopped and "runs/karpathy-1" in stopped
    assert re.match(r"best\.npz, the weights after [56],000 steps: mean score -.* over 2 fresh games", best)

    again = fastpong("train", *SMALL, "--config", str(run.path / "config.toml"), "--steps", "100", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert RunFolder(tmp_path / "runs" / "karpathy-2").config() == run.config()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "65"], "64 games"),
        (["--workers", "0"], "--workers must be 1 or more"),
        (["--envs", "0"], "envs must be 1"),
        (["--envs", "-3"], "envs must be 1"),
        (["--envs", "few"], "integer"),
        (["--preset", "best"], "there is no preset 'best'"),
        (["--set", "gamma=2"], "gamma must be 0 … 1"),
        (["--set", "gamma"], "key=value"),
        (["--steps", "0"], "--steps must be 1 or more"),
        (["--minutes", "0"], "--minutes must be more than 0"),
        (["--config", "missing.toml"], "cannot read missing.toml"),
        (["--resume"], "there is no run"),
        (["--resume", "--run", "nothing"], "there is no run in nothing"),
        (["--fast"], "--fast"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_nothing(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = fastpong("train", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in one_line(done.stderr)
    assert not os.listdir(tmp_path)


def test_evaluation_prints_the_contracts_numbers(tmp_path: Path) -> None:
    assert fastpong("train", *SMALL, "--steps", "400", "--run", "run", cwd=tmp_path).returncode == 0
    done = fastpong("eval", "run", "--games", "3", "--seed", "5", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(one_line(done.stdout))
    assert set(result) == {"games", "mean", "ci95_low", "ci95_high", "wins", "steps"}
    assert (
        result["games"] == 3 and result["ci95_low"] <= result["mean"] <= result["ci95_high"] and result["steps"] > 2000
    )
    done = fastpong("eval", "run", "--games", "1", "--sticky", "0", cwd=tmp_path)
    assert done.returncode == 0 and one_line(done.stdout).startswith("mean score -") and not done.stderr
    assert "the same game every time" in fastpong("eval", "run", "--games", "2", "--sticky", "0", cwd=tmp_path).stderr
    done = fastpong("eval", "nothing.npz", cwd=tmp_path)
    assert done.returncode == 1 and "there is no checkpoint nothing.npz" in one_line(done.stderr)
    assert fastpong("eval", "run", "--games", "0", cwd=tmp_path).returncode == 2


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = fastpong("train", "--envs", "0", "--debug", cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_version_help_and_what_they_import(tmp_path: Path) -> None:
    assert fastpong("--version", cwd=tmp_path).stdout.strip() == f"fastpong {__version__}"
    script = "import sys, fastpong.cli, fastpong.errors; sys.exit('numba' in sys.modules or 'gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
    script = "import sys, fastpong.games; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
    for command in ("train", "eval", "play", "bench", "plot"):
        assert command in fastpong("--help", cwd=tmp_path).stdout
        assert fastpong(command, "--help", cwd=tmp_path).returncode == 0


def test_ctrl_c_saves_and_the_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    arguments = ["train", *SMALL, "--set", "log_steps=400"]
    process = start(*arguments, "--run", "parts", cwd=tmp_path)
    wait_for((tmp_path / "parts" / "metrics.jsonl").exists)
    games = workers_of(process)
    assert len(games) == 2
    for child in games:
        child.send_signal(signal.SIGINT)  # a terminal sends ctrl-C to all of them
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted" in out and "Traceback" not in err
    assert not any(child.is_running() for child in games)
    steps = json.loads((tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()[-1])["steps"]
    assert fastpong("train", "--run", "parts", "--resume", "--steps", str(steps + 4000), cwd=tmp_path).returncode == 0
    assert fastpong(*arguments, "--run", "whole", "--steps", str(steps + 4000), cwd=tmp_path).returncode == 0
    parts, whole = (RunFolder(tmp_path / name).newest()[0] for name in ("parts", "whole"))
    assert int(whole["learner.updates"]) >= 1
    for name in ("policy.w1", "policy.w2", "learner.cache", "games.emulators", "games.screens"):
        np.testing.assert_array_equal(parts[name], whole[name], err_msg=name)


def test_kill_9_leaves_no_process_and_the_last_checkpoint(tmp_path: Path) -> None:
    settings = ["--set", "log_steps=400", "--set", "checkpoint_steps=400"]
    process = start("train", *SMALL, *settings, "--run", "run", cwd=tmp_path)
    run = RunFolder(tmp_path / "run")
    wait_for(lambda: len(run.checkpoints()) == 2)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    psutil.wait_procs(family, timeout=10)
    assert not [child for child in family if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    done = fastpong("train", "--run", "run", "--resume", "--steps", "2400", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] >= 2400


def test_a_dead_game_subprocess_ends_the_run_with_one_line(tmp_path: Path) -> None:
    settings = ["--set", "log_steps=400", "--set", "checkpoint_steps=400"]
    process = start("train", *SMALL, *settings, "--run", "run", cwd=tmp_path)
    run = RunFolder(tmp_path / "run")
    wait_for(run.checkpoints)
    workers_of(process)[0].kill()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    message = err.strip().splitlines()[-1]
    assert "was killed by SIGKILL" in message and "--run run --resume" in message
    assert "Traceback" not in err
    assert fastpong("train", "--run", "run", "--resume", "--steps", "100", cwd=tmp_path).returncode == 0


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    settings = ["--set", "log_steps=400", "--set", "checkpoint_steps=400"]
    assert fastpong("train", *SMALL, *settings, "--run", "run", "--steps", "1200", cwd=tmp_path).returncode == 0
    newest, older = RunFolder(tmp_path / "run").checkpoints()
    newest.write_bytes(newest.read_bytes()[:5000])
    done = fastpong("train", "--run", "run", "--resume", "--steps", "1600", cwd=tmp_path)
    assert done.returncode == 0
    assert "is damaged" in done.stderr and "going on from 800 steps" in done.stderr
    for path in RunFolder(tmp_path / "run").checkpoints():
        path.write_bytes(b"")
    done = fastpong("train", "--run", "run", "--resume", cwd=tmp_path)
    assert done.returncode == 1 and "no checkpoint to continue from" in done.stderr.strip().splitlines()[-1]


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """The kernel refuses files over a limit, as a full disk would."""
    settings = ["--set", "log_steps=400", "--set", "checkpoint_steps=800"]
    assert fastpong("train", *SMALL, *settings, "--run", "run", "--steps", "800", cwd=tmp_path).returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.npz")}

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    done = fastpong("train", "--run", "run", "--resume", "--steps", "2400", cwd=tmp_path, preexec_fn=small_files)
    assert done.returncode == 1
    assert "training goes on" in done.stderr  # at 1600 steps
    assert "cannot save" in done.stderr.strip().splitlines()[-1] and "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert not list((tmp_path / "run").rglob("*.tmp"))


def test_two_trainings_do_not_share_a_folder(tmp_path: Path) -> None:
    process = start("train", *SMALL, "--set", "log_steps=400", "--run", "run", cwd=tmp_path)
    wait_for((tmp_path / "run" / "metrics.jsonl").exists)
    for arguments in (["--resume"], []):
        done = fastpong("train", "--run", "run", *arguments, cwd=tmp_path)
        assert done.returncode in (1, 2)
        assert "another fastpong" in done.stderr or "holds a run already" in done.stderr
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    done = fastpong("train", "--run", "run", "--resume", "--envs", "8", cwd=tmp_path)
    assert done.returncode == 2 and "envs is 4 in run and cannot change to 8" in one_line(done.stderr)
