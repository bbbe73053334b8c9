"""A run's folder on a disk that fails at the n-th operation, for every n: afterwards it opens, and has old or new."""

import errno
import itertools
from pathlib import Path

import numpy as np
import pytest

from fastpong import files
from fastpong.config import Config
from fastpong.errors import FastpongError
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder
from tests.support.faults import Crash, disk
from tests.support.runs import facts, line

STEPS = (100, 200, 300)


def session(run: RunFolder, done: list[str]) -> None:
    """Do what a run does with its folder, note what is done, and go on after errors, as a run does."""

    def attempt(what: str, work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except FastpongError:
            return
        done.append(what)

    attempt("create", run.create, Config(), {})
    if not run.exists():
        return
    with run.lock():
        for steps in STEPS:
            attempt(f"line {steps}", run.log, line(steps))
            arrays = {"steps": np.array(steps), "policy.w": np.full(300, steps)}
            attempt(f"checkpoint {steps}", run.save_checkpoint, arrays, facts(steps))
            attempt(f"candidate {steps}", run.add_candidate, arrays, facts(steps, score=steps / 100))
        attempt("cut", run.cut_metrics, 200)


def check(run: RunFolder, done: list[str], power_cut: bool = False) -> None:
    """Open the folder as `--resume` does: the newest checkpoint that was saved, or a later one, is there, and whole."""
    if not run.exists():
        assert "create" not in done
        return
    assert run.config() == Config()
    with run.lock():
        assert not list(run.path.rglob("*.tmp"))
    saved = [steps for steps in STEPS if f"checkpoint {steps}" in done]
    if saved:
        arrays, found, complaints = run.newest()
        assert not complaints and found.steps >= saved[-1]
        assert (arrays["policy.w"] == found.steps).all()
    lines = {one["steps"] for one in read_metrics(run.metrics)} if run.metrics.exists() else set()
    if not power_cut:
        assert lines >= {steps for steps in STEPS if f"line {steps}" in done and steps <= 200}


@pytest.mark.parametrize(
    ("errors", "stays"),
    [((errno.ENOSPC, errno.EDQUOT), False), ((errno.EIO, errno.EROFS), False), ((errno.ENOSPC,), True)],
)
def test_an_error_at_any_operation(errors: tuple[int, ...], stays: bool, tmp_path: Path) -> None:
    """The run goes on, and loses at most what could not be written. Errors of a kind take turns."""
    for at in itertools.count(1):
        run, done = RunFolder(tmp_path / f"{at}"), list[str]()
        with disk(at, errors[at % len(errors)], stays) as faulty:
            session(run, done)
        check(run, done)
        if faulty.count < at:
            break
    assert at > 50 and len(done) == 11


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_at_any_operation(power_cut: bool, tmp_path: Path) -> None:
    """After a power cut what was not synced is gone as well."""
    for at in itertools.count(1):
        run, done = RunFolder(tmp_path / f"{at}"), list[str]()
        with disk(at, None) as faulty:
            try:
                session(run, done)
                break
            except Crash:
                if power_cut:
                    faulty.lose_power()
        check(run, done, power_cut)
    assert at > 50 and len(done) == 11


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write(path, b"old")
    for at in range(1, 6):
        with disk(at, errno.ENOSPC), pytest.raises(OSError, match="No space left"):
            files.write(path, b"new")
        assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    for at in range(1, 4):
        with disk(at, errno.ENOSPC), pytest.raises(OSError, match="No space left"):
            files.append(path, b"more")
        assert path.read_bytes() == b"old"
    files.append(path, b"er")
    assert path.read_bytes() == b"older"
