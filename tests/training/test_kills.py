"""A run that is killed between two of its files: when it goes on, the whole folder is that of one left alone."""

from pathlib import Path

import pytest

from bench.killed import differences
from tests.support.faults import Crash, disk, fault
from tests.support.trainings import run, small

CONFIG = small("fast", log_interval=200, checkpoint_interval=200)
STEPS = 600


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run that nobody disturbs, and its operations on files by name."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with disk(10**9, None) as counting:
        run(folder, CONFIG, STEPS)
    return folder, counting.names


@fault("kill -9 between two files", times=3)
def test_a_kill_after_any_file_changes_nothing(whole: tuple[Path, list[str]], tmp_path: Path) -> None:
    """After the first weights of the history, and after each file that the second checkpoint puts in its place."""
    folder, names = whole
    placed = [at for at, name in enumerate(names, 1) if name == "replace"]
    assert len(placed) == 9  # settings, history, a checkpoint with best.npz and candidate, two with a candidate each
    for at in (placed[1], *placed[4:7]):
        with disk(at + 1, None), pytest.raises(Crash):
            run(tmp_path / f"{at}", CONFIG, STEPS)
        assert differences(folder, tmp_path / f"{at}"), "it was killed"
        run(tmp_path / f"{at}", CONFIG, STEPS, resume=True)
        assert differences(folder, tmp_path / f"{at}") == [], at
