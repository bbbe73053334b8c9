import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from fastpong.commands.play import Match, play
from fastpong.config import make_config
from fastpong.errors import FastpongError, UsageError
from fastpong.policy import make_policy
from fastpong.training.checkpoint import save


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    config = make_config("karpathy", {"hidden_units": 8, "num_envs": 4})
    weights = make_policy(config).weights.arrays
    path = tmp_path / "best.npz"
    save(path, {f"policy.{name}": array for name, array in weights.items()}, {"config": dataclasses.asdict(config)})
    return path


def test_a_whole_game_has_a_winner(agent: Path) -> None:
    match = Match(agent, seed=3, sticky=0.25)
    pictures = list(match.pictures())
    assert max(match.score) == 21
    assert len(pictures) == match.steps - 1
    again = Match(agent, seed=3, sticky=0.25)
    assert sum(1 for _ in again.pictures()) == len(pictures) and again.score == match.score


def test_a_film_shows_the_game(agent: Path, tmp_path: Path) -> None:
    score, steps = play(agent, out=tmp_path / "game.gif", seed=3, max_steps=150)
    assert steps == 150 and sum(score) >= 1
    expected = list(Match(agent, seed=3, sticky=0.25).pictures(150))
    with Image.open(tmp_path / "game.gif") as film:
        assert film.size == (320, 420)
        total = 0
        seen: npt.NDArray[np.uint8] | None = None
        for frame in range(getattr(film, "n_frames", 1)):
            film.seek(frame)
            seen = np.asarray(film.convert("RGB"))[::2, ::2]
            total += film.info["duration"]
        assert total == 150 * 70  # hundredths of a second; equal pictures are merged
        assert seen is not None
        np.testing.assert_array_equal(seen, expected[-1])


def test_a_sheet_of_pictures(agent: Path, tmp_path: Path) -> None:
    play(agent, out=tmp_path / "sheet.png", max_steps=30)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (4 * 168 + 8, 3 * 234 + 8)


def test_wrong_usage(agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(UsageError, match="no display"):
        play(agent)
    with pytest.raises(UsageError, match="choose one"):
        play(agent, out=tmp_path / "x.gif", terminal=True)
    with pytest.raises(UsageError, match=".gif, .mp4 or .png"):
        play(agent, out=tmp_path / "x.avi")
    with pytest.raises(UsageError, match="there is no folder"):
        play(agent, out=tmp_path / "no" / "x.gif")
    with pytest.raises(FastpongError, match="there is no checkpoint"):
        play(tmp_path / "missing.npz", terminal=True)
