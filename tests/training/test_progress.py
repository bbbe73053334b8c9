import io
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from fastpong.rollout.episode_stats import EpisodeStats
from fastpong.training.progress import (
    LiveProgress,
    PlainProgress,
    Progress,
    clock,
    curve,
    describe,
    make_progress,
    svg_curve,
)

LINE: dict[str, Any] = {
    "updates": 1,
    "wall_s": 83.4,
    "steps": 1280000,
    "steps_per_s": 8251.4,
    "games": 1034,
    "score": -19.83,
    "point_rate": 0.081,
}


def test_numbers_in_words() -> None:
    assert clock(83.4) == "1:23" and clock(3723) == "1:02:03"
    text = describe(LINE)
    for part in ("1:23", "1,280,000 steps", "8,251/s", "1,034 games", "-19.83", "8.1 %"):
        assert part in text
    assert len(text) <= 80  # a line of a plain terminal
    assert "score      –" in describe({**LINE, "score": None, "point_rate": None})


def test_a_curve_rises_from_the_lower_left_to_the_upper_right() -> None:
    lines = curve([(x * 1e4, -21 + 0.4 * x) for x in range(101)], 60, 8)
    assert len(lines) == 8
    assert {len(line) for line in lines} == {60}
    rows = [[i for i, c in enumerate(line) if 0x2800 < ord(c) <= 0x28FF] for line in lines[:-1]]
    assert all(max(low) <= min(high) + 1 for high, low in zip(rows, rows[1:], strict=False))
    assert lines[0].startswith("  19.0│") and lines[-2].startswith(" -21.0│")
    assert lines[-1].endswith("1.00 M steps")


def test_a_flat_curve_stays_flat() -> None:
    lines = curve([(0, -20.5), (1e6, -20.5)], 40, 8)
    assert sum(any(ord(c) > 0x2800 for c in line) for line in lines) == 1
    assert "starts with" in curve([(0, 1)], 40, 8)[0]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_live_panel_shows_numbers_curve_and_notes(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=24)
    progress = LiveProgress(console, "the title", [{**LINE, "steps": 100, "score": -21.0}])
    progress.metrics(LINE)
    progress.note("a remark")
    progress.close()
    for part in ("the title", "1,280,000", "score", "-19.83", "8.1", "a remark", "1.28 M steps"):
        assert part in out.getvalue()


def test_names_in_the_live_panel_are_text() -> None:
    out = io.StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=100, height=24), "run a[/b][red] \x1b]0;x\x07")
    progress.note("a [bold]remark\x9b\nof two")
    progress.close()
    for part in ("run a[/b][red]", r"\x1b]0;x\x07", "a [bold]remark", r"\x9b\nof two"):
        assert part in out.getvalue()
    assert "\x1b]" not in out.getvalue() and "\x9b" not in out.getvalue()


def test_a_display_is_live_only_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in many a CI: stderr is a file all the same
    assert isinstance(make_progress(None, "title"), PlainProgress)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for term, kind in (("dumb", PlainProgress), ("xterm", LiveProgress)):
        monkeypatch.setenv("TERM", term)
        progress = make_progress(None, "title")
        progress.close()
        assert isinstance(progress, kind)
    assert type(make_progress("none", "title")) is Progress and type(make_progress("lines", "title")) is PlainProgress


def test_a_batch_of_games_is_told_in_the_words_of_rays_example() -> None:
    batch = {"updates": 3, "batch_games": 10, "batch_s": 8.94, "running_reward": -20.41}
    said = "Batch 3 computed 10 rollouts in 8.9 seconds, running mean is -20.4100"
    assert describe({**LINE, **batch}) == said == describe({**LINE, **batch}, {**LINE, **batch, "updates": 2})
    assert "1,280,000 steps" in describe({**LINE, **batch}, {**LINE, **batch})  # no batch lies between the two


def test_points_and_games_are_told_in_the_words_of_karpathys_program(capsys: pytest.CaptureFixture[str]) -> None:
    progress, stats = make_progress("lines", "title", preset="karpathy"), EpisodeStats(1, 0.5)
    progress.played(stats)
    for reward, ended in ((-1, 0), (1, 1), (0, 0), (-1, 1)):
        stats.add(np.array([reward], np.int8), np.array([ended], np.int8))
    stats.synchronise()
    progress.played(stats)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "ep 0: game finished, reward: -1",
        "resetting env. episode reward total was 0. running mean: 0.0000",
        "ep 1: game finished, reward: 1 !!!!!!!!",
        "resetting env. episode reward total was -1. running mean: -0.5000",
        "ep 2: game finished, reward: -1",
    ]


def test_of_many_envs_only_games_are_told_in_the_words_of_karpathys_program(capsys: pytest.CaptureFixture[str]) -> None:
    progress, stats = make_progress("lines", "title", preset="karpathy", envs=2), EpisodeStats(2, 0.5)
    for rewards, ended in (([-1, 0], [0, 0]), ([0, 1], [0, 1]), ([-1, -1], [1, 1])):
        stats.add(np.array(rewards, np.int8), np.array(ended, np.int8))
    stats.synchronise()
    progress.played(stats)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "resetting env. episode reward total was 1. running mean: 1.0000",
        "resetting env. episode reward total was -2. running mean: -0.5000",
        "resetting env. episode reward total was -1. running mean: -0.7500",
    ]


def test_windows_are_told_in_the_words_of_ppg_pong() -> None:
    windows = {"window_reward": -1.25, "running_reward": -0.5, "learning_rate": 1e-3, "per_kup": 12.5}
    text = describe({**LINE, **windows})
    for part in ("83, ", "0001280000 steps @   8251/s", " -1.2 |", "-0.5000 @ 1.0e-03 lr", "12.5 r/Kup"):
        assert part in text


def test_a_curve_for_a_notebook_begins_and_ends_where_it_should() -> None:
    drawn = ElementTree.fromstring(svg_curve([(100_000, -21.0), (200_000, 0.0), (400_000, 14.0)]))
    line = drawn.find("polyline")
    assert line is not None and line.get("points") == "150.0,150.0 300.0,66.0 600.0,10.0"
    assert [text.text for text in drawn.findall("text")] == ["14.0", "-21.0", "0.40 M steps"]
