"""Whatever ends a run, it saves first; and whoever stops reading its output does not end it."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastpong.errors import tell
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder
from tests.support.commands import PROGRAM, SMALL, one_line, settings, start, wait_for, workers_of
from tests.support.faults import fault
from tests.support.terminal import Terminal
from tests.support.trainings import run as train_here
from tests.support.trainings import small


def is_beyond(run: RunFolder, steps: int) -> bool:
    lines = read_metrics(run.metrics) if run.metrics.exists() else []
    return bool(lines) and int(lines[-1]["steps"]) > steps


@fault("signals", times=10)
def test_signals_to_the_whole_group_save_first_and_the_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    arguments = ["train", *SMALL, *settings(log_interval=400)]
    run, steps = RunFolder(tmp_path / "parts"), 0
    for number in (signal.SIGINT, signal.SIGHUP):  # SIGTERM: tests/parallel/test_mpi.py
        begin = ["train", "--resume", "--workers", "2"] if run.exists() else arguments
        process = start(*begin, "--run", "parts", cwd=tmp_path, start_new_session=True)
        wait_for(functools.partial(is_beyond, run, steps))
        workers = workers_of(process)
        assert len(workers) == 2
        for _ in range(2):  # `timeout` and mpiexec send it to their child and to the group
            os.killpg(process.pid, number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "interrupted" in out and "Traceback" not in err
        assert not any(child.is_running() for child in workers)
        steps = run.newest().facts.steps
        assert read_metrics(run.metrics)[-1]["steps"] == steps
    config = small("command", log_interval=400)
    train_here(run.path, config, steps + 3000, resume=True)
    train_here(tmp_path / "whole", config, steps + 3000)
    parts, whole = run.newest()[0], RunFolder(tmp_path / "whole").newest()[0]
    assert int(whole["learner.updates"]) >= 1
    for name in parts.keys() - {"stats.counts"}:  # which counts points since the last line of metrics
        np.testing.assert_array_equal(parts[name], whole[name], err_msg=name)


@fault("a signal during the last evaluation", times=10)
def test_a_signal_skips_the_choice_among_candidates(tmp_path: Path) -> None:
    changes = settings(eval_games=1000, log_interval=400, checkpoint_interval=400)
    process = start("train", *SMALL, *changes, "--steps", "1200", "--json", "--run", "run", cwd=tmp_path)
    assert process.stderr is not None
    assert any("ctrl-C skips this" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and json.loads(one_line(out))["best"] is None
    assert (tmp_path / "run" / "best.npz").exists()


@fault("nobody reads, no terminal", times=10)
@pytest.mark.parametrize("reader", ["2>&1 | head -n 1 >&2; exit ${PIPESTATUS[0]}", "2>&- --json"])
def test_training_does_not_depend_on_a_reader(reader: str, tmp_path: Path) -> None:
    words = ["train", *SMALL, *settings(log_interval=400), "--steps", "1200", "--run", "run"]
    command = f"{PROGRAM} {' '.join(words)} {reader}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert RunFolder(tmp_path / "run").newest().facts.steps == 1200
    if "json" in reader:
        assert json.loads(one_line(done.stdout))["steps"] == 1200


@fault("nobody reads, no terminal", times=10)
def test_training_goes_on_without_its_terminal(tmp_path: Path) -> None:
    terminal = Terminal("train", *SMALL, *settings(log_interval=400), "--steps", "3000", "--run", "run", cwd=tmp_path)
    terminal.read(until=b"games")
    os.close(terminal.side)
    assert terminal.process.wait(60) == 0
    assert RunFolder(tmp_path / "run").newest().facts.steps == 3000


def test_a_result_that_a_full_disk_swallows_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [PROGRAM, "presets"]
    with contextlib.suppress(OSError), open("/dev/full", "w") as full:  # closing it fails as well
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(OSError, match="No space left"):
            tell("{}", result=True)
        monkeypatch.setattr(sys, "stderr", full)
        tell("a note that nobody needs")
    assert done.returncode == 1 and "No space left on device" in one_line(done.stderr)
