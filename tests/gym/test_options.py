"""Both envs take the same options and seeds, and refuse the same ones before anything starts."""

import math
from typing import Any

import ale_py  # noqa: F401, registers its envs with gymnasium
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from fastpong.errors import UsageError
from fastpong.gym import PongEnv, PongVectorEnv

ID = "fastpong/Pong-v0"
OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"frame_skip": 0}, "frame_skip must be 1 … 60, not 0"),
    ({"frame_skip": -1}, "1 … 60"),
    ({"frame_skip": 2.5}, "an integer"),
    ({"frame_skip": (2, 5)}, "an integer"),
    ({"repeat_action_probability": 1.5}, "repeat_action_probability must be 0 … 0.99, not 1.5"),
    ({"repeat_action_probability": -1}, "0 … 0.99"),
    ({"repeat_action_probability": math.nan}, "0 … 0.99"),
    ({"repeat_action_probability": None}, "a number"),
    ({"frameskip": 4}, "did you mean 'frame_skip'"),
    ({"zzz": 4}, "the options are .*obs, actions"),
    ({"obs": ["rgb"]}, "obs is one of"),
    ({"obs": "grey"}, "obs is one of screen, rgb"),
    ({"actions": 4}, "one of 2, 3, 6"),
    ({"actions": [2]}, "one of 2, 3, 6"),
    ({"actions": 3.0}, "one of 2, 3, 6"),
    ({"render_mode": "human"}, "fastpong play"),
    ({"engine": "stella"}, "the engine is one of"),
]


@pytest.mark.parametrize(("options", "said"), OPTIONS, ids=lambda value: str(value)[:40])
def test_impossible_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        PongEnv(**options)
    with pytest.raises(UsageError, match=said):
        PongVectorEnv(2, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_envs": 0}, "num_envs must be 1 … 65536, not 0"),
        ({"num_envs": 2.5}, "num_envs must be an integer"),
        ({"workers": 0}, "^workers must be an integer, 1 or more, not 0"),
        ({"workers": 1.5}, "^workers must be"),
        ({"workers": 9}, "9 workers have too little to do with 3 envs: use 3 or fewer"),
        ({"autoreset_mode": "x"}, "SameStep"),
    ],
)
def test_impossible_options_of_many_games(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        PongVectorEnv(**{"num_envs": 3, **options})


def test_numbers_may_be_numpys() -> None:
    options: Any = {"frame_skip": np.int64(2), "repeat_action_probability": np.float32(0.5), "actions": np.int64(3)}
    many: Any = {"num_envs": np.int64(2), "workers": np.int64(1)}
    PongEnv(**options)
    envs = PongVectorEnv(**many, **options)
    assert envs.num_envs == 2
    envs.close()


SEEDS = [
    0,
    2**63 - 1,
    2**63,
    2**64 + 1,
    np.random.SeedSequence(5).entropy,
    np.random.SeedSequence().entropy,
    np.uint64(9),
]


def test_any_seed_is_the_same_in_both_envs_and_another_one_is_not() -> None:
    env, envs = PongEnv(obs="court"), PongVectorEnv(1, obs="court")
    games = []
    for seed in SEEDS:
        alone, many = [env.reset(seed=seed)[0]], [envs.reset(seed=seed)[0][0]]  # type: ignore[arg-type]
        for t in range(150):  # after 60 one pair in two hundred is still the same
            action = 2 + t // 6 % 2
            alone.append(env.step(action)[0])
            many.append(envs.step(np.array([action]))[0][0])
        np.testing.assert_array_equal(alone, many)
        games.append(np.array(alone).tobytes())
    assert len({*games}) == len(SEEDS)
    envs.close()


@pytest.mark.parametrize("seed", [-1, 1.5, "1", [1, 2]])
def test_no_seeds(seed: Any) -> None:
    envs = PongVectorEnv(1)
    for one in (PongEnv(), envs):
        with pytest.raises(UsageError, match="seed is one integer for all games, 0 or more"):
            one.reset(seed=seed)
    envs.close()


@pytest.mark.parametrize("grey", [True, False])
def test_gymnasiums_preprocessing_takes_single_frames(grey: bool) -> None:
    """As it takes those of ALE, with the same images; and refuses what skips frames already."""
    made = [
        FrameStackObservation(AtariPreprocessing(env, noop_max=0, grayscale_obs=grey), 4)
        for env in (
            gymnasium.make(ID, frame_skip=1, obs="rgb", repeat_action_probability=0.0),
            gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0),
        )
    ]
    np.testing.assert_array_equal(*(env.reset(seed=0)[0] for env in made))
    for t in range(150):
        action = 2 + t // 5 % 2
        (ours, *outcome, _), (theirs, *expected, _) = (env.step(action) for env in made)
        np.testing.assert_array_equal(ours, theirs)
        assert outcome == expected
    with pytest.raises(ValueError, match="Disable frame-skipping"):
        AtariPreprocessing(gymnasium.make(ID))
