import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from fastpong.commands.play import Match, half_blocks, play
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
        assert sheet.size == (640, 630)


def test_half_blocks_show_ball_and_paddles() -> None:
    picture = np.zeros((210, 160, 3), np.uint8)
    picture[:] = (144, 72, 17)
    picture[101:105, 80:82] = 236  # a ball of two by four pixels
    for columns, lines in ((160, 60), (80, 30), (40, 24), (20, 10)):
        text = half_blocks(picture, columns, lines)
        rows = text.split("\n")
        assert len(rows) <= lines
        assert all(row.count("▀") == rows[0].count("▀") <= columns for row in rows)
        assert "236;236;236" in text and "144;72;17" in text


def test_the_terminal_is_left_as_it_was(agent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, steps = play(agent, terminal=True, max_steps=3, speed=100.0)
    out = capsys.readouterr().out
    assert steps == 3
    assert out.startswith("\x1b[?1049h\x1b[?25l") and out.endswith("\x1b[?25h\x1b[?1049l")
    assert out.count("opponent") == 3


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
