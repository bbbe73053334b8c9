import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fastpong.cores import usable_cores
from fastpong.errors import UsageError
from fastpong.games import Games, GamesError, check_workers
from fastpong.pong import PongGames


def play(games: Games, steps: int) -> list[list[Any]]:
    """Random actions that depend on step and game alone; outcomes and checksums by step, in game order."""
    seen = []
    for step in range(steps):
        actions = np.random.default_rng(step).integers(0, 2, games.envs).astype(np.uint8)
        for group, members in enumerate(games.groups):
            games.recv(group)
            games.send(group, actions[members])
        for group in range(len(games.groups)):
            games.recv(group)
        at = games.slots
        seen.append(
            [[hash(s.tobytes()) for s in games.screens[at]], games.rewards[at].tolist(), games.ended[at].tolist()]
        )
    return seen


@pytest.mark.parametrize(("envs", "workers", "groups"), [(5, 2, 2), (5, 3, 2), (5, 5, 2), (7, 1, 3), (1, 1, 2)])
def test_any_distribution_plays_the_same_games(envs: int, workers: int, groups: int) -> None:
    with Games(envs, workers, seed=6, groups=groups) as games:
        assert sorted(np.concatenate(games.groups).tolist()) == list(range(envs))
        assert max(map(len, games.groups)) - min(map(len, games.groups)) <= 1
        games.reset()
        comp = play(games, 60)
    alone = PongGames(range(envs), seed=6)
    alone.reset()
    for step, row in enumerate(comp):
        actions = np.random.default_rng(step).integers(0, 2, envs)
        observation = alone.step(actions)[0]
        assert row[0] == [hash(s.tobytes()) for s in observation["screens"]]
        assert row[1] == observation["rewards"].tolist()


def test_groups_are_balanced_for_many_workers() -> None:
    with Games(64, 16) as games:
        assert [len(group) for group in games.groups] == [32, 32]
        assert len(games.processes) == 16


def test_snapshot_moves_to_other_workers() -> None:
    with Games(5, 2, seed=3) as games:
        games.reset()
        play(games, 40)
        for group, members in enumerate(games.groups):
            games.send(group, np.zeros(len(members), np.uint8))  # steps in flight belong to the snapshot
        saved = games.snapshot()
        expected = play(games, 30)
    with Games(5, 3, seed=3) as games:
        games.restore(saved)
        np.testing.assert_array_equal(games.screens[games.slots], saved["screens"])
        assert play(games, 30) == expected


def test_it_is_a_gymnasium_environment() -> None:
    with Games(4, 2, seed=1) as games:
        observation, _ = games.reset(seed=1)
        assert games.observation_space.contains(observation)
        observation, rewards, terminated, truncated, _ = games.step(games.action_space.sample())
        assert games.observation_space.contains(observation)
        assert rewards.shape == terminated.shape == truncated.shape == (2,)
        assert np.shares_memory(observation["screens"], games.screens)


@pytest.mark.parametrize(("envs", "workers", "words"), [(4, 5, "4 games"), (4, 0, "1 or more"), (0, None, "--envs")])
def test_impossible_numbers(envs: int, workers: int | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Games(envs, workers)


def test_one_worker_per_core_but_no_more_than_games() -> None:
    assert check_workers(64, None) == min(64, usable_cores())
    assert check_workers(1, None) == 1


def alive(processes: list[Any]) -> list[int]:
    return [process.pid for process in processes if psutil.pid_exists(process.pid)]


def test_closing_leaves_no_process_even_with_steps_in_flight() -> None:
    games = Games(4, 2)
    games.reset()
    games.send(0, np.zeros(len(games.groups[0]), np.uint8))
    processes = [psutil.Process(process.pid) for process in games.processes]
    games.close()
    assert not alive(processes)


def test_an_exception_leaves_no_process() -> None:
    with pytest.raises(ZeroDivisionError), Games(4, 2) as games:
        processes = [psutil.Process(process.pid) for process in games.processes]
        raise ZeroDivisionError
    assert not alive(processes)


def test_a_killed_subprocess_is_named() -> None:
    with Games(4, 2) as games:
        games.reset()
        psutil.Process(games.processes[1].pid).kill()
        with pytest.raises(GamesError, match=r"game subprocess 1 \(pid \d+\) was killed by SIGKILL"):
            play(games, 5)


def test_a_failing_subprocess_says_why() -> None:
    with Games(4, 2) as games:
        games.reset()
        games.send(0, np.full(len(games.groups[0]), 9, np.uint8))
        with pytest.raises(GamesError, match="IndexError"):
            games.recv(0)


def test_a_script_without_its_guard_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("from fastpong.games import Games\nGames(2, 1)\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "under if __name__ == '__main__'" in done.stderr.strip().splitlines()[-1]


def test_subprocesses_ignore_ctrl_c_and_have_one_thread() -> None:
    with Games(4, 2) as games:
        games.reset()
        for process in games.processes:
            psutil.Process(process.pid).send_signal(signal.SIGINT)
            assert psutil.Process(process.pid).num_threads() == 1
        time.sleep(0.1)
        play(games, 3)
