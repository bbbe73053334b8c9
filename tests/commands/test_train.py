"""``fastpong train`` as a user meets it: real subprocesses, their output, exit codes and files."""

import json
import re
import resource
import shutil
import signal
from pathlib import Path

import numpy as np
import psutil

from fastpong import __version__
from fastpong.config_sources import read_toml
from fastpong.runs.checkpoint import load, save
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder
from tests.support.commands import SMALL, fastpong, here, one_line, settings, start, wait_for, workers_of
from tests.support.faults import fault
from tests.support.trainings import run as train_here
from tests.support.trainings import small


def test_a_run_and_its_files(tmp_path: Path) -> None:
    done = fastpong("train", *SMALL, "--steps", "5000", *settings(log_interval=1000), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(one_line(done.stdout))
    assert result["reason"] == "steps" and result["steps"] == 5000
    run = RunFolder(tmp_path / result["run"])
    assert run.path == tmp_path / "runs" / "karpathy-1"
    assert len(run.checkpoints()) == 1 and run.best.exists()
    assert run.config().hidden_units == 8
    toml = run.path.joinpath("config.toml").read_text()
    for word in ("numpy", "numba", "gymnasium", "ale_py", "python", __version__):
        assert word in toml
    assert "\x1b" not in done.stderr  # no terminal: plain lines
    assert len(re.findall(r"steps .*/s .*games  score", done.stderr)) == 5

    more = here("train", "--resume", "--steps", "6000", "--target", "20", *settings(eval_games=1), cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    stopped, best = more.stdout.splitlines()
    assert "6,000 steps" in stopped and "runs/karpathy-1" in stopped
    assert re.match(r"best\.npz, the weights after [56],000 steps: mean score -.* over 2 fresh games", best)

    again = here("train", "--config", str(run.path / "config.toml"), "--print-config", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    (tmp_path / "again.toml").write_text(again.stdout)
    assert read_toml(tmp_path / "again.toml")[0] == read_toml(run.path / "config.toml")[0]


@fault("kill -9", times=10)
def test_kill_9_leaves_no_process_and_the_last_checkpoint(tmp_path: Path) -> None:
    options = settings(log_interval=400, checkpoint_interval=400)
    process = start("train", *SMALL, *options, "--run", "run", cwd=tmp_path)
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


def test_a_run_resumed_at_its_limit_stays_as_it_is(tmp_path: Path) -> None:
    assert here("train", *SMALL, "--run", "run", "--steps", "400", cwd=tmp_path).returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    done = fastpong("train", "--run", "run", "--resume", "--steps", "400", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("nothing to do, the limit of steps is reached")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_ppg_goes_on_after_its_first_windows(tmp_path: Path) -> None:
    """Its windows are of time, and two seconds are a run for the console: here they are shorter."""
    steps = ["--steps", "40000", *settings(window_seconds=0.02)]
    done = here("train", "--preset", "ppg", "--envs", "8", *steps, "--run", "run", cwd=tmp_path)
    assert done.returncode == 0 and "the limit of steps is reached" in done.stdout
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) > 1


@fault("an env subprocess dies", times=10)
def test_an_env_subprocess_that_dies_is_replaced_and_no_bit_changes(tmp_path: Path) -> None:
    arguments = ["train", *SMALL, *settings(log_interval=400, checkpoint_interval=800), "--steps", "6000"]
    process, run = start(*arguments, "--run", "run", cwd=tmp_path), RunFolder(tmp_path / "run")
    wait_for(run.checkpoints)
    workers_of(process)[0].kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err.count("was killed by SIGKILL: another one takes its place") == 1
    assert read_metrics(run.metrics)[-1]["replaced"] == 1
    train_here(tmp_path / "whole", small("command", log_interval=400, checkpoint_interval=800), 6000)
    parts, whole = run.newest()[0], RunFolder(tmp_path / "whole").newest()[0]
    assert int(whole["learner.updates"]) >= 1
    for name, array in whole.items():
        np.testing.assert_array_equal(parts[name], array, err_msg=name)


@fault("an env subprocess dies three times within a minute", times=10)
def test_an_env_subprocess_that_dies_again_and_again_ends_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    process = start("train", *SMALL, "--workers", "1", *settings(log_interval=400), "--run", "run", cwd=tmp_path)
    run = RunFolder(tmp_path / "run")
    wait_for(lambda: run.metrics.exists() and read_metrics(run.metrics))
    for count in (1, 2, 3):
        wait_for(lambda: workers_of(process))
        workers_of(process)[0].kill()
        wait_for(lambda count=count: read_metrics(run.metrics)[-1]["replaced"] == count)  # type: ignore[misc]
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    message = err.strip().splitlines()[-1]
    assert "env subprocess 0 was lost 3 times within 60 s" in message and "--run run --resume" in message
    assert "Traceback" not in err
    steps = run.newest().facts.steps
    assert steps == read_metrics(run.metrics)[-1]["steps"]
    more = here("train", "--run", "run", "--resume", "--steps", str(steps + 100), cwd=tmp_path)
    assert more.returncode == 0, more.stderr


@fault("a damaged checkpoint", times=10)
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    train_here(tmp_path / "run", small("command", log_interval=400, checkpoint_interval=400), 1200)
    newest, older = RunFolder(tmp_path / "run").checkpoints()
    newest.write_bytes(newest.read_bytes()[:5000])
    done = fastpong("train", "--run", "run", "--resume", "--steps", "1600", cwd=tmp_path)
    assert done.returncode == 0
    assert "is damaged" in done.stderr and "going on from 800 steps" in done.stderr
    for path in RunFolder(tmp_path / "run").checkpoints():
        path.write_bytes(b"")
    done = here("train", "--run", "run", "--resume", cwd=tmp_path)
    assert done.returncode == 1 and "no checkpoint to continue from" in done.stderr.strip().splitlines()[-1]


@fault("a full disk", times=10)
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """The kernel refuses files over a limit, as a full disk would."""
    train_here(tmp_path / "run", small("command", log_interval=400, checkpoint_interval=800), 800)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.npz")}

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    done = fastpong("train", "--run", "run", "--resume", "--steps", "2400", cwd=tmp_path, preexec_fn=small_files)
    assert done.returncode == 1
    assert "training goes on" in done.stderr  # at 1600 steps
    assert "cannot save" in done.stderr.strip().splitlines()[-1] and "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert not list((tmp_path / "run").rglob("*.tmp"))


@fault("the folder is deleted", times=10)
def test_a_folder_that_is_deleted_ends_the_run(tmp_path: Path) -> None:
    process = start("train", *SMALL, *settings(log_interval=400), "--run", "run", cwd=tmp_path)
    wait_for((tmp_path / "run" / "metrics.jsonl").exists)
    shutil.rmtree(tmp_path / "run")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "run was moved, deleted or replaced while a run was writing there" in err.strip().splitlines()[-1]
    assert not (tmp_path / "run").exists()


@fault("two trainings in one folder", times=10)
def test_two_trainings_do_not_share_a_folder(tmp_path: Path) -> None:
    process = start("train", *SMALL, *settings(log_interval=400), "--run", "run", cwd=tmp_path)
    wait_for((tmp_path / "run" / "metrics.jsonl").exists)
    process.send_signal(signal.SIGSTOP)  # it has its lock, and its core is free
    done = fastpong("train", "--run", "run", "--resume", cwd=tmp_path)
    assert done.returncode == 2 and "another fastpong" in one_line(done.stderr)
    done = here("train", "--run", "run", cwd=tmp_path)
    assert done.returncode == 2 and "holds a run already" in one_line(done.stderr)
    for number in (signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    done = here("train", "--run", "run", "--resume", "--envs", "8", cwd=tmp_path)
    assert done.returncode == 2 and "num_envs is 4 in run and cannot change to 8" in one_line(done.stderr)


def test_a_run_whose_folder_is_replaced_ends_and_the_next_one_has_it_alone(tmp_path: Path) -> None:
    process = start("train", *SMALL, *settings(log_interval=400, checkpoint_interval=800), "--run", "run", cwd=tmp_path)
    wait_for((tmp_path / "run" / "metrics.jsonl").exists)
    process.send_signal(signal.SIGSTOP)
    (tmp_path / "run").rename(tmp_path / "old")
    train_here(tmp_path / "run", small("command", seed=2), 1200)
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "run was moved, deleted or replaced while a run was writing there" in errors.splitlines()[-1]
    steps = [json.loads(line)["steps"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps)) and steps[-1] == 1200


def test_a_run_goes_on_with_the_engine_that_saved_it(tmp_path: Path) -> None:
    """Here ALE; where none is named it is the console, as in all other tests."""
    engine, other = "ale", "console"
    done = here("train", *SMALL, "--run", "run", "--steps", "400", "--engine", engine, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f'engine = "{engine}"' in (tmp_path / "run" / "config.toml").read_text()
    (newest,) = RunFolder(tmp_path / "run").checkpoints()
    arrays, about = load(newest)
    assert about["engine"] == load(RunFolder(tmp_path / "run").best)[1]["engine"] == engine
    save(newest, arrays, {**about, "engine": other})
    before = newest.read_bytes()
    more = ["train", "--run", "run", "--resume", "--steps", "800", "--engine", engine]
    done = here(*more, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"fastpong: run was saved on the {other} engine: add --engine {other}"
    assert newest.read_bytes() == before
    save(newest, arrays, about)
    assert fastpong(*more, cwd=tmp_path).returncode == 0
