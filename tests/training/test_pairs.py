"""Two faults, one after the other, between the sessions of a run: it ends as a run does that nobody disturbed.

Three pairs of them; with ``--faults`` all.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fastpong.runs.checkpoint import load
from fastpong.runs.folder import RunFolder
from tests.support.faults import fault
from tests.support.trainings import run, small

CONFIG = small("fast", log_interval=96, checkpoint_interval=96)
SESSIONS = (384, 576, 768)
"""Steps after which a session ends; a checkpoint comes every 96."""


def newest(run: RunFolder) -> Path:
    return run.checkpoints()[0]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def put_back_an_older_one(run: RunFolder) -> None:
    """As from a backup: what was newer is gone."""
    for path in run.checkpoints()[:-1]:
        path.unlink()


FAULTS: dict[str, Callable[[RunFolder], None]] = {
    "the newest checkpoint is cut": lambda run: cut(newest(run)),
    "a bit of it is another one": lambda run: flip(newest(run)),
    "it is deleted": lambda run: newest(run).unlink(),
    "all but the oldest are": put_back_an_older_one,
    "best.npz is cut": lambda run: cut(run.best),
    "best.npz is deleted": lambda run: run.best.unlink(),
    "a candidate is cut": lambda run: cut(run.candidates()[-1]),
    "weights of the history are cut": lambda run: cut(run.history.paths()[-1]),
    "the log is cut": lambda run: cut(run.metrics),
    "the log has nonsense": lambda run: append(run.metrics, b'\xff{"steps": NaN}\n'),
    "the log is deleted": lambda run: run.metrics.unlink(),
    "an unfinished file is left": lambda run: newest(run).with_name(f".{newest(run).name}.999999999.tmp").touch(),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The sessions of a run that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    for steps in SESSIONS:
        run(folder, CONFIG, steps, resume=steps != SESSIONS[0])
    return RunFolder(folder)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pair" in metafunc.fixturenames:
        pairs = [*itertools.product(FAULTS, repeat=2)]
        some = pairs[:: len(pairs) // 2 - 1]  # not on the diagonal alone
        metafunc.parametrize("pair", pairs if metafunc.config.getoption("faults") else some, ids=", ".join)


@fault("two faults, one after the other", times=1)
def test_pairs_of_faults(pair: tuple[str, str], whole: RunFolder, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    run(folder.path, CONFIG, SESSIONS[0])
    for steps, name in zip(SESSIONS[1:], pair, strict=True):
        FAULTS[name](folder)
        run(folder.path, CONFIG, steps, resume=True)
    (arrays, facts), (wanted, _) = load(newest(folder)), load(newest(whole))
    assert facts["steps"] == SESSIONS[-1] and arrays.keys() == wanted.keys()
    for key, array in wanted.items():
        np.testing.assert_array_equal(arrays[key], array, err_msg=key)
    assert folder.best.exists() and len(folder.checkpoints()) == 2
    assert [path.name for path in folder.history.paths()] == [path.name for path in whole.history.paths()]
