"""Two trainings in one folder, however it is moved, edited or kept on a file system without locks."""

import errno
import fcntl
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong.config import Config
from fastpong.errors import UsageError
from fastpong.runs.checkpoint import CheckpointError
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder
from tests.support.runs import facts, line


def made(path: Path) -> RunFolder:
    RunFolder(path).create(Config(), {})
    return RunFolder(path)


def test_an_editor_may_replace_the_settings(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    with run.lock():
        (run.path / "new").write_bytes((run.path / "config.toml").read_bytes())
        (run.path / "new").replace(run.path / "config.toml")
        with pytest.raises(UsageError, match="another fastpong is training"), RunFolder(run.path).lock():
            pass
    with run.lock():
        pass


@pytest.mark.parametrize("replaced", [True, False])
def test_a_run_whose_folder_is_moved_writes_nothing_into_the_next_one(tmp_path: Path, replaced: bool) -> None:
    run, arrays = made(tmp_path / "run"), {"a": np.zeros(3)}
    with run.lock():
        run.log(line(1))
        assert run.is_ours()
        run.path.rename(tmp_path / "old")
        if replaced:
            other = made(tmp_path / "run")
            with other.lock():
                other.log(line(2))
        assert not run.is_ours()
        for write in (
            lambda: run.log(line(3)), lambda: run.save_checkpoint(arrays, facts(4)), lambda: run.cut_metrics(1),
            lambda: run.save_best(arrays, facts(4)), lambda: run.add_candidate(arrays, facts(4)),
        ):  # fmt: skip
            with pytest.raises(CheckpointError, match="was moved, deleted or replaced"):
                write()
    if replaced:
        assert read_metrics(run.metrics) == [line(2)]
        assert not run.checkpoints() and not run.candidates() and not run.best.exists()


def test_a_run_whose_folder_is_replaced_in_the_midst_of_writing_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is half written then has no name to be given any more."""
    run, sync = made(tmp_path / "run"), os.fsync

    def replace_and_sync(file: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        run.path.rename(tmp_path / "old")
        made(run.path)
        sync(file)

    with run.lock():
        monkeypatch.setattr(os, "fsync", replace_and_sync)
        with pytest.raises(CheckpointError, match="was moved, deleted or replaced"):
            run.save_checkpoint({"a": np.zeros(3)}, facts(4))
    assert not run.checkpoints()


def test_nfs_wants_the_lock_open_for_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """flock(2): its client makes an fcntl lock of it, and that needs a file that is open for writing."""
    real = fcntl.flock

    def flock(file: Any, operation: int) -> None:
        number = file if isinstance(file, int) else file.fileno()
        if operation & fcntl.LOCK_EX and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    notes: list[str] = []
    with made(tmp_path / "run").lock(notes.append):
        assert not notes


def test_without_locks_a_run_trains_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: Any, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    run, notes = made(tmp_path / "run"), list[str]()
    with run.lock(notes.append):
        run.log(line(1))
    (note,) = notes
    assert note.startswith(f"no lock for {run.path} (No locks available)")


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    run, victim = made(tmp_path / "run"), tmp_path / "victim"
    (run.path / "lock").symlink_to(victim)
    with pytest.raises(UsageError, match="cannot write"), run.lock():
        pass
    assert not victim.exists()


def test_who_looks_whether_a_run_trains_does_not_keep_it_from_beginning(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    assert not run.is_training()
    with run.lock():
        assert run.is_training() and RunFolder(run.path).is_training()
    assert not run.is_training()
    look = os.open(run.path / "lock", os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    threading.Timer(0.03, os.close, (look,)).start()
    with run.lock():
        assert run.is_training()
