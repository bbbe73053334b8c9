from typing import Any

import numpy as np
import pytest

from fastpong.rollout.episode_stats import EpisodeStats
from fastpong.show.progress import KarpathyProgress, clock, describe

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


def test_a_batch_of_games_is_told_in_the_words_of_rays_example() -> None:
    batch = {"updates": 3, "batch_games": 10, "batch_s": 8.94, "running_reward": -20.41}
    said = "Batch 3 computed 10 rollouts in 8.9 seconds, running mean is -20.4100"
    assert describe({**LINE, **batch}) == said == describe({**LINE, **batch}, {**LINE, **batch, "updates": 2})
    assert "1,280,000 steps" in describe({**LINE, **batch}, {**LINE, **batch})  # no batch lies between the two


def test_points_and_games_are_told_in_the_words_of_karpathys_program(capsys: pytest.CaptureFixture[str]) -> None:
    progress, stats = KarpathyProgress("title", 1), EpisodeStats(1, 0.5)
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
    progress, stats = KarpathyProgress("title", 2), EpisodeStats(2, 0.5)
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
