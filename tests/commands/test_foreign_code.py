"""No file of the current directory is run, by no Python that is started: a stranger's folder may be the place to be."""

from pathlib import Path

import pytest

from fastpong.training.warm_up import _leave, _start
from tests.support.commands import SMALL, fastpong, plant_foreign_code


@pytest.mark.parametrize("command", [
    ("eval", "--games", "1"), ("train", *SMALL, "--steps", "40"), ("doctor",),
], ids=lambda command: command[0])  # fmt: skip
def test_commands(tmp_path: Path, command: tuple[str, ...]) -> None:
    ran = plant_foreign_code(tmp_path)
    done = fastpong(*command, cwd=tmp_path)
    assert not ran.exists(), (ran.read_text(), done.stderr)
    assert done.returncode == 0 or command[0] == "doctor", done.stderr
    assert "a bug" not in done.stderr


def test_what_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cache that is filled, it runs all the same."""
    ran = plant_foreign_code(tmp_path)
    monkeypatch.chdir(tmp_path)
    process = _start(["fastpong.envs.verify"])
    _leave(process)
    assert process.wait(timeout=120) == 0
    assert not ran.exists(), ran.read_text()
