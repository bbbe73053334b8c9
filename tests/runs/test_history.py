"""Weights that are kept from the way of a run: which, once each, and nothing that training would miss."""

from pathlib import Path

import numpy as np
import pytest

from fastpong.config import Config
from fastpong.policy import make_policy
from fastpong.runs.facts import Facts, load_policy
from fastpong.runs.folder import RunFolder
from tests.support.faults import full_disk

CONFIG = Config()
WEIGHTS = make_policy(CONFIG).weights.arrays
BATCH = 8192


def add(run: RunFolder, *steps: int) -> None:
    for at in steps:
        run.history.add(WEIGHTS, Facts(CONFIG, at, engine="console"))


def steps_of(run: RunFolder) -> list[int]:
    return [int(path.stem.removeprefix("step_")) for path in run.history.paths()]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.create(CONFIG, {})
    return folder


def test_the_first_weights_from_each_of_some_steps_on_are_kept(run: RunFolder) -> None:
    add(run, *range(0, 60_001, BATCH))
    assert steps_of(run) == [0, 24_576, 57_344]
    add(run, *range(65_536, 6_000_000, 10 * BATCH))
    assert len(steps_of(run)) == 9
    config, weights = load_policy(run.history.paths()[1])
    assert config == CONFIG
    for name, array in WEIGHTS.items():
        np.testing.assert_array_equal(weights[name], array.astype(np.float16).astype(np.float32))


def test_a_session_neither_repeats_nor_loses_one(run: RunFolder) -> None:
    """It was killed after 60,000 steps, and goes on from a checkpoint before some of what it had kept."""
    add(run, *range(0, 60_001, BATCH))
    for checkpoint in (57_344, 52_000, 24_576, 20_001, 100):
        session = RunFolder(run.path)
        session.history.drop_after(checkpoint)
        assert max(steps_of(run)) <= checkpoint
        add(session, *(steps for steps in range(0, 60_001, BATCH) if steps > checkpoint))
        assert steps_of(run) == [0, 24_576, 57_344]


def test_what_cannot_be_kept_is_left_out(run: RunFolder) -> None:
    nan = {**WEIGHTS, "w2": np.full_like(WEIGHTS["w2"], np.nan)}
    run.history.add(nan, Facts(CONFIG, 0))
    session = RunFolder(run.path)
    with full_disk(run.path, left=1000):
        add(session, 0)
    add(session, 100)
    assert steps_of(run) == []
    add(session, 20_480)
    assert steps_of(run) == [20_480]


def test_names_of_others_are_not_ours(run: RunFolder) -> None:
    folder = run.path / "history"
    folder.mkdir()
    others = [folder / name for name in ("step_x.npz", "step_000000000009.npz.bak", "notes")]
    for path in others:
        path.touch()
    assert steps_of(run) == []
    run.history.drop_after(-1)
    assert all(path.exists() for path in others)
