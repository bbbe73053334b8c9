"""What a killed process leaves in the folder for temporary files goes with a later start, and nothing else goes."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastpong.envs.temporary import PREFIX
from fastpong.training.run_folder import RunFolder
from tests.support.commands import SMALL, fastpong, settings, start, wait_for
from tests.support.faults import fault


@pytest.fixture
def temporaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files, with a name short enough for a socket in it; `tmp_path` is not in it."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def left(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*"))


@fault("kill -9: files in /tmp", times=10)
def test_what_a_killed_group_left_goes_with_a_later_start(temporaries: Path, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    process = start("train", *SMALL, *settings(log_interval=400), "--run", "run", cwd=tmp_path, start_new_session=True)
    wait_for(run.metrics.exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (killed,) = left(temporaries)
    assert list(killed.glob("pymp-*/listener-*"))
    (temporaries / f"{PREFIX}mine").mkdir()
    (temporaries / f"{PREFIX}mine" / "file").write_text("")
    for folder in left(temporaries):
        os.utime(folder, (1e9, 1e9))
    assert fastpong("train", "--run", "run", "--resume", "--steps", "800", cwd=tmp_path).returncode == 0
    assert [entry.name for entry in temporaries.iterdir()] == [f"{PREFIX}mine"]


def test_that_of_a_process_that_lives_stays(temporaries: Path, tmp_path: Path) -> None:
    process = start("train", *SMALL, *settings(log_interval=400), "--run", "run", cwd=tmp_path)
    try:
        wait_for((tmp_path / "run" / "metrics.jsonl").exists)
        (living,) = left(temporaries)
        os.utime(living, (1e9, 1e9))
        assert fastpong("train", *SMALL, "--run", "other", "--steps", "400", cwd=tmp_path).returncode == 0
        assert list(living.glob("pymp-*/listener-*"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130 and not left(temporaries)
