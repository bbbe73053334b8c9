"""``play --follow``: whose weights play which point, and when it ends."""

import threading
from pathlib import Path

import numpy as np
import pytest

from fastpong.commands.follow import Following
from fastpong.commands.follow import run as follow
from fastpong.config import make_config
from fastpong.errors import UsageError
from fastpong.policy import make_policy
from fastpong.runs.checkpoint import CheckpointError
from fastpong.runs.folder import RunFolder
from tests.support.runs import facts

CONFIG = make_config("karpathy", {"hidden_units": 2})


def made(path: Path) -> RunFolder:
    run = RunFolder(path)
    run.create(CONFIG, {})
    return run


def add(run: RunFolder, steps: int, seed: int = 0, units: int = 2) -> None:
    config = make_config("karpathy", {"hidden_units": units, "seed": seed})
    weights = {f"policy.{name}": array for name, array in make_policy(config).weights.arrays.items()}
    run.add_candidate(weights, facts(steps, config))


def test_each_point_is_played_by_the_newest_weights_until_the_run_has_ended(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    with run.lock():
        add(run, 100)
        following = Following(run.path)
        pictures = following.pictures()
        played: list[int] = []  # the steps of the weights of each point

        def play_a_point(ends: bool = False) -> None:
            before = following.steps
            while not following.match.last.reward:
                next(pictures)
            played.append(before)
            assert (next(pictures, None) is None) == ends  # only now it looks at the run

        play_a_point()
        play_a_point()
        add(run, 300, seed=1)
        (run.path / "candidates" / "step_000000000400.npz").write_bytes(b"damaged")
        play_a_point()
        assert following.status()[1] == "step 300" == f"step {following.steps}"
        weights = following.match._policy.weights
        np.testing.assert_array_equal(weights.arrays["w1"], run_weights(1)["w1"])
        play_a_point()
        add(run, 350, seed=2)
    play_a_point()  # it has ended, and not all has played
    play_a_point(ends=True)
    assert following.ended and played == [100, 100, 100, 300, 300, 350]
    assert {steps: sum(points) for steps, points in following.points.items()} == {100: 3, 300: 2, 350: 1}
    assert following.match.score == [sum(points[side] for points in following.points.values()) for side in (0, 1)]


def run_weights(seed: int) -> dict[str, np.ndarray]:
    return dict(make_policy(make_config("karpathy", {"hidden_units": 2, "seed": seed})).weights.arrays)


def test_games_follow_games(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    add(run, 100)
    with run.lock():
        following = Following(run.path)
        pictures = following.pictures()
        scores: list[int] = []
        while len(scores) < 23:
            next(pictures)
            if following.match.last.reward:
                scores.append(max(following.match.score))
    assert max(scores) == 21 and scores[-1] <= 2


def test_it_waits_for_the_first_weights_as_long_as_the_run_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made(tmp_path / "run")
    with pytest.raises(CheckpointError, match="has no weights that could play, and is not being trained"):
        Following(run.path)
    with run.lock():
        later = threading.Timer(0.3, add, (run, 100))
        later.start()
        assert Following(run.path).steps == 100
        later.join()
    assert "waiting for the first ones" in capsys.readouterr().err


def test_another_run_in_the_folder_is_told(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    add(run, 100)
    following = Following(run.path)
    add(run, 200, units=3)
    with pytest.raises(CheckpointError, match="another run than before"):
        list(following.pictures())


def test_wrong_usage(tmp_path: Path) -> None:
    for folder in (None, tmp_path, tmp_path / "best.npz"):
        with pytest.raises(UsageError, match="--follow needs the folder of a run|needs a terminal"):
            follow(folder, True, None, 1.0, False)
        with pytest.raises(UsageError, match="--follow needs the folder of a run"):
            follow(folder, False, None, 1.0, False)
