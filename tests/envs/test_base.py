"""Envs in this process do what the same envs in a subprocess do."""

import numpy as np

from fastpong.config import make_config
from fastpong.envs.base import Envs, LocalEnvs, layout
from fastpong.envs.vector_env import VectorEnv
from tests.support.envs import play_at_random

CONFIG = make_config("fast", {"num_envs": 1, "seed": 8, "num_actions": 2})


def test_local_envs_play_what_a_subprocess_does(engine: str) -> None:
    """Beyond the end of a game, with another frame skip; a second reset goes on with the noise, a seed begins anew."""
    for changes, steps in (({}, 1000), ({"frame_skip": 3, "repeat_action_probability": 0.5}, 100)):
        config = make_config("fast", {"num_envs": 3, "seed": 8, **changes})
        local = LocalEnvs.of(config, range(1, 3), engine)
        with VectorEnv.of(config, 1, range(1, 3), engine=engine) as vector:
            runs = []
            each: tuple[Envs, Envs] = local, vector
            for envs in each:
                envs.reset()
                np.testing.assert_array_equal(envs.ended, 1)
                first = play_at_random(envs, steps)
                envs.reset()
                runs.append((first, play_at_random(envs, 50)))
                envs.reset(seed=8)
                assert play_at_random(envs, 50) == first[:50] != runs[-1][1]
        assert runs[0] == runs[1]
    assert (local.env_count, local.env_offset) == (2, 1)


def test_a_long_local_game_has_points_and_an_end(engine: str) -> None:
    local = LocalEnvs.of(CONFIG, engine=engine)
    local.reset()
    seen = play_at_random(local, 1200)
    assert any(step.rewards[0] for step in seen) and any(step.ended[0] for step in seen)
    assert len({step.images[0] for step in seen}) > 100


def test_a_snapshot_moves_between_this_process_and_a_subprocess(engine: str) -> None:
    with VectorEnv.of(CONFIG, 1, engine=engine) as vector:
        local, other = (LocalEnvs.of(CONFIG, engine=engine) for _ in range(2))
        vector.reset()
        local.reset()
        others: dict[str, tuple[Envs, Envs]] = {"from here": (local, vector), "to here": (vector, other)}
        for source, target in others.values():
            play_at_random(source, 130)
            saved = source.snapshot()
            assert saved.keys() == layout(CONFIG).keys()
            expected = play_at_random(source, 90, first=130)
            target.restore({name: array.copy() for name, array in saved.items()})
            for name in ("courts", "rewards", "ended"):
                np.testing.assert_array_equal(target.arrays[name], saved[name])
            for name, array in target.snapshot().items():
                np.testing.assert_array_equal(array, saved[name], err_msg=name)
            assert play_at_random(target, 90, first=130) == expected


def test_a_snapshot_does_not_change_when_the_env_goes_on(engine: str) -> None:
    """Over the end of a game as well: what comes after it is restored exactly, any number of times."""
    local = LocalEnvs.of(CONFIG, engine=engine)
    local.reset()
    play_at_random(local, 700)
    saved = local.snapshot()
    expected = play_at_random(local, 600, first=700)
    assert any(step.ended[0] for step in expected)
    for _ in range(2):
        local.restore(saved)
        assert play_at_random(local, 600, first=700) == expected
