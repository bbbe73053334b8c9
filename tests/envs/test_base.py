"""An env in this process does what the same env in a subprocess does."""

import numpy as np

from fastpong.config import make_config
from fastpong.envs.base import LAYOUT, Envs, LocalEnv
from fastpong.envs.vector_env import VectorEnv
from tests.support.envs import play_at_random

CONFIG = make_config("fast", {"num_envs": 1, "seed": 8, "num_actions": 2})


def test_a_local_env_plays_what_a_subprocess_does() -> None:
    """Beyond the end of a game, and with another frame skip; a second reset goes on with the noise."""
    for changes, steps in (({}, 1200), ({"frame_skip": 3, "repeat_action_probability": 0.5}, 100)):
        config = make_config("fast", {"num_envs": 1, "seed": 8, "num_actions": 2, **changes})
        local = LocalEnv(config)
        with VectorEnv.of(config, 1) as vector:
            runs = []
            each: tuple[Envs, Envs] = local, vector
            for envs in each:
                envs.reset()
                np.testing.assert_array_equal(envs.ended[envs.rows], 1)
                first = play_at_random(envs, steps)
                envs.reset()
                runs.append((first, play_at_random(envs, 50)))
        assert runs[0] == runs[1]
    assert (local.env_count, local.env_offset) == (1, 0)


def test_a_long_local_game_has_points_and_an_end() -> None:
    local = LocalEnv(CONFIG)
    seen = play_at_random(local, 1200)
    assert any(step.rewards[0] for step in seen) and any(step.ended[0] for step in seen)
    assert len({step.screens[0] for step in seen}) > 100


def test_a_snapshot_moves_between_this_process_and_a_subprocess() -> None:
    with VectorEnv.of(CONFIG, 1) as vector:
        vector.reset()
        local = LocalEnv(CONFIG)
        others: dict[str, tuple[Envs, Envs]] = {"from here": (local, vector), "to here": (vector, LocalEnv(CONFIG))}
        for source, target in others.values():
            play_at_random(source, 130)
            saved = source.snapshot()
            assert saved.keys() == LAYOUT.keys()
            expected = play_at_random(source, 90, first=130)
            target.restore({name: array.copy() for name, array in saved.items()})
            for name in ("screens", "rewards", "ended"):
                np.testing.assert_array_equal(getattr(target, name)[target.rows], saved[name])
            for name, array in target.snapshot().items():
                np.testing.assert_array_equal(array, saved[name], err_msg=name)
            assert play_at_random(target, 90, first=130) == expected


def test_a_snapshot_does_not_change_when_the_env_goes_on() -> None:
    """Over the end of a game as well: what comes after it is restored exactly, any number of times."""
    local = LocalEnv(CONFIG)
    play_at_random(local, 700)
    saved = local.snapshot()
    expected = play_at_random(local, 600, first=700)
    assert any(step.ended[0] for step in expected)
    for _ in range(2):
        local.restore(saved)
        assert play_at_random(local, 600, first=700) == expected
