import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fastpong.agent import Agent, load
from fastpong.api import evaluate
from fastpong.arrays import U8
from fastpong.commands.play import Match, play
from fastpong.config import make_config
from fastpong.errors import FastpongError, UsageError
from fastpong.policy import make_policy
from fastpong.runs.checkpoint import save
from fastpong.show import film, window


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    config = make_config("karpathy", {"hidden_units": 8, "num_envs": 4})
    weights = make_policy(config).weights.arrays
    path = tmp_path / "best.npz"
    save(path, {f"policy.{name}": array for name, array in weights.items()}, {"config": dataclasses.asdict(config)})
    return load(path, sample=True)


def test_a_whole_game_has_a_winner(agent: Agent) -> None:
    match = Match(agent)
    pictures = list(match.pictures())
    assert max(match.score) == 21
    assert len(pictures) == match.steps
    assert (pictures[-1] != pictures[0]).any()  # the last of the game, not the first of the next one
    score, choice = match.status()  # preset karpathy expects nothing
    assert score == "agent {:2}   opponent {:2}".format(*match.score)
    assert match.last.reward and choice.split()[0] in ("up", "down") and choice.endswith(" %")
    again = Match(agent)
    assert sum(1 for _ in again.pictures()) == len(pictures) and again.score == match.score


@pytest.mark.parametrize("sample", [False, True])
def test_the_game_is_the_first_one_that_eval_plays(agent: Agent, sample: bool) -> None:
    agent.sample = sample
    match = Match(agent, 3)
    assert len(list(match.pictures())) == match.steps
    result = evaluate(agent, 3, seed=3, workers=2)
    assert match.score[0] - match.score[1] == result.scores[0]


@pytest.mark.parametrize("end", ["close", "q", "escape", "ctrl-C"])
def test_a_window_shows_pictures_until_it_is_closed(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SDL's own driver without a screen: what it draws and its events are real."""
    import pygame

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    seen = []

    def pictures() -> Iterator[U8]:
        for shade in (40, 80, 120, 160):
            if shade > 40:
                drawn = pygame.display.get_surface()
                assert drawn is not None
                seen.append(drawn.get_at((400, 300))[0])
            if shade == 120:
                if end == "ctrl-C":
                    raise KeyboardInterrupt
                key = {"q": pygame.K_q, "escape": pygame.K_ESCAPE}.get(end)
                for event in (pygame.K_SPACE, pygame.K_SPACE):  # a pause, and on
                    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=event))
                last = pygame.event.Event(pygame.KEYDOWN, key=key) if key else pygame.event.Event(pygame.QUIT)
                pygame.event.post(last)
            yield np.full((210, 160, 3), shade, np.uint8)

    window.show(pictures(), lambda: ["status"])
    assert seen == [40, 80]
    assert not pygame.display.get_init()


def test_a_film_shows_the_game(agent: Agent, tmp_path: Path) -> None:
    match = play(agent, tmp_path / "game.gif", max_steps=150)
    assert match.steps == 150 and sum(match.score) >= 1
    expected = list(Match(agent).pictures(150))
    with Image.open(tmp_path / "game.gif") as shown:
        assert shown.size == (320, 420) and getattr(shown, "n_frames", 1) == 150
        for frame, picture in enumerate(expected):
            shown.seek(frame)
            np.testing.assert_array_equal(np.asarray(shown.convert("RGB"))[1::2, 1::2], picture)
            assert shown.info["duration"] == (70, 60, 70)[frame % 3]  # 15 a second, in hundredths


@pytest.mark.parametrize("speed", [0.5, 1, 8, 100])
def test_a_film_is_as_long_as_the_game_at_any_speed(speed: float) -> None:
    pictures = np.zeros((1000, 1), np.uint8)
    times = [hundredths for _, hundredths in film.in_hundredths(iter(pictures), 4 / 60 / speed)]
    assert min(times) >= 2 and max(times) - min(times) <= 1
    assert abs(sum(times) - 100 * 1000 * 4 / 60 / speed) <= 2


def test_the_fastest_film_can_be_written(agent: Agent, tmp_path: Path) -> None:
    play(agent, tmp_path / "fast.mp4", max_steps=30, speed=100)
    assert (tmp_path / "fast.mp4").stat().st_size > 1000


def test_a_film_is_written_while_it_is_played(tmp_path: Path) -> None:
    out, sizes = tmp_path / "noise.gif", []  # more than a file keeps in memory: 128 KiB in Python 3.14

    def pictures() -> Iterator[U8]:
        for picture in np.random.default_rng(0).integers(0, 256, (5, 400, 400, 3), np.uint8):
            sizes.append(out.stat().st_size if out.exists() else 0)
            yield picture

    film.write(pictures(), out, 0.1, str)
    assert sizes[2] < sizes[3] < sizes[4] < out.stat().st_size


def test_a_sheet_of_pictures(agent: Agent, tmp_path: Path) -> None:
    play(agent, out=tmp_path / "sheet.png", max_steps=30)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size == (4 * 168 + 8, 3 * 234 + 8)


@pytest.mark.parametrize(
    ("library", "file", "words"),
    [("PIL", "x.gif", "Pillow.*play"), ("PIL", "x.png", "Pillow.*play"), ("imageio_ffmpeg", "x.mp4", "ffmpeg.*video")],
)
def test_a_missing_library_is_named(
    library: str, file: str, words: str, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(FastpongError, match=words):
        play(agent, tmp_path / file)
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(FastpongError, match="pygame.*play"):
        play(agent)


def test_wrong_usage(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(UsageError, match="no display"):
        play(agent)
    with pytest.raises(UsageError, match="choose one"):
        play(agent, out=tmp_path / "x.gif", in_terminal=True)
    with pytest.raises(UsageError, match=".gif, .mp4, .png or .html"):
        play(agent, out=tmp_path / "x.avi")
    with pytest.raises(UsageError, match="there is no folder"):
        play(agent, out=tmp_path / "no" / "x.gif")
    with pytest.raises(FastpongError, match="there is no checkpoint"):
        load(tmp_path / "missing.npz")
