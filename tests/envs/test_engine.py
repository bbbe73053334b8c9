"""What an engine has to do, whichever it is: the rules of Pong, and a state that is the row and nothing else."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from ale_py import Action

from fastpong.config import make_config
from fastpong.envs.ale import ACTIONS
from fastpong.envs.base import LocalEnvs
from fastpong.envs.emulators import make_engine
from fastpong.envs.engine import DEFAULT_ENGINE, ENGINES, IMAGES, SAVED_IMAGES, STATE_BYTES, Engine
from fastpong.envs.memory import zeros
from fastpong.envs.sticky import sticky_repeats
from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import UsageError
from fastpong.pong import STAY
from fastpong.training.actor import Actor
from tests.support.envs import Seen, play, step


def random_actions(steps: int, envs: int, num_actions: int = 2) -> npt.NDArray[np.int64]:
    return np.random.default_rng(3).integers(0, num_actions, (steps, envs))


def only(seen: list[Seen], envs: list[int]) -> list[Seen]:
    """What some of the envs showed."""
    return [Seen(*([part[env] for env in envs] for part in one)) for one in seen]


def started(engine: str, envs: range = range(1), seed: int = 0, sticky: float = 0.25) -> LocalEnvs:
    local = LocalEnvs(envs, seed, repeat_action_probability=sticky, engine=engine, images=IMAGES)
    local.reset()
    return local


def test_scores_of_whole_games_match_gymnasium_with_sticky_actions(engine: str) -> None:
    """Frame by frame against the registered environment, to the last point of several games."""
    steps = 2600
    actions = random_actions(steps, 1, 3)
    seen = play(started(engine, range(5, 6), seed=11), actions)
    repeats = sticky_repeats(11, np.array([5]), 0, steps, 4, 0.25)[:, 0]
    env = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0, full_action_space=True)
    env.reset(seed=0)
    last, scores, score, over = Action.NOOP, [], 0.0, False
    for action, repeat in zip(actions[:, 0].tolist(), repeats.tolist(), strict=True):
        for frame in range(4):
            if frame >= repeat:
                last = ACTIONS[action]
            if not over:
                _, reward, over, truncated, _ = env.step(last.value)
                score += float(reward)
                assert not truncated
        if over:
            scores.append(score)
            env.reset()
            last, score, over = Action.NOOP, 0.0, False
    ours, rewards = [], 0.0
    for one in seen:
        rewards += one.rewards[0]
        if one.ended[0]:
            ours.append(rewards)
            rewards = 0.0
    assert len(scores) >= 2
    assert ours == scores
    env.close()


def test_without_sticky_actions_every_screen_is_gymnasiums(engine: str) -> None:
    """Beyond the end of a game: the next one, which ours begins from a saved state, is the one after a reset."""
    local, ends = started(engine, sticky=0.0), 0
    env: Any = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, full_action_space=True)
    env.reset(seed=1)
    ale = env.unwrapped.ale
    np.testing.assert_array_equal(local.screens[0], ale.getScreen())
    for action in random_actions(1500, 1):
        _, reward, over, truncated, _ = env.step(ACTIONS[int(action[0])].value)
        step(local, action)
        assert (local.rewards[0], local.ended[0]) == (reward, over) and not truncated
        if over:
            np.testing.assert_array_equal(local.arrays["final_screens"][0], ale.getScreen())
            assert not local.arrays["earlier_screens"].any()
            env.reset()
            ends += 1
        np.testing.assert_array_equal(local.screens[0], ale.getScreen())
    assert ends >= 1
    env.close()


def test_up_moves_the_paddle_up(engine: str) -> None:
    tops = []
    for action in (0, 1):
        local = started(engine, sticky=0.0)
        play(local, np.full((40, 1), action))
        tops.append(int(np.flatnonzero(local.screens[0, 34:194, 140] != 34).mean()))  # the agent's is on the right
    assert tops[0] < tops[1] - 50


def test_an_env_does_not_notice_its_company(engine: str) -> None:
    """Alone, or among others, in one process or several: the same games."""
    actions = random_actions(1100, 3)
    with VectorEnv(3, 2, seed=2, images=SAVED_IMAGES, engine=engine) as envs:
        envs.reset()
        together = play(envs, actions)
    assert any(any(one.ended) for one in together)
    for env in (1, 2):
        assert play(started(engine, range(env, env + 1), seed=2), actions[:, [env]]) == only(together, [env])
    assert any(one.images[0] != one.images[1] for one in together)


@pytest.mark.parametrize("before", [0, 2, 700])
def test_a_row_is_all_of_a_state(engine: str, before: int) -> None:
    """Copied into other company, at a reset and over the end of games: it goes on bit for bit."""
    actions, rules = random_actions(before + (700 if before == 700 else 100), 3), dict(seed=4, engine=engine)
    local = LocalEnvs(range(3), **rules)  # type: ignore[arg-type]
    local.reset()
    play(local, actions[:before])
    saved = local.snapshot()
    expected = play(local, actions[before:])
    other = LocalEnvs(range(1, 3), **rules)  # type: ignore[arg-type]
    other.restore({name: array[1:] for name, array in saved.items()})
    assert play(other, actions[before:, 1:]) == only(expected, [1, 2])
    assert saved["rows"].shape == (3, STATE_BYTES[engine])
    if before == 700:
        assert any(any(one.ended) for one in expected)


def engine_on(engine: str, envs: int) -> tuple[Engine, dict[str, Any]]:
    """Return an engine whose envs are in the first state of a game, and its arrays."""
    arrays = zeros(envs, engine, IMAGES)
    made = make_engine(engine, arrays, 4)
    made.reset(range(envs))
    return made, arrays


def test_an_env_that_stays_holds_still(engine: str) -> None:
    made, arrays = engine_on(engine, 2)
    arrays["rewards"][:] = arrays["ended"][:] = 1
    before = {name: array.copy() for name, array in arrays.items()}
    made.step(range(2), np.array([0, STAY], np.uint8), np.zeros(2, np.uint8))
    for name, array in arrays.items():
        if name in ("rewards", "ended"):
            assert array.tolist() == [0, 0]
        else:
            np.testing.assert_array_equal(array[1], before[name][1])
    assert (arrays["rows"][0] != before["rows"][0]).any()


def test_a_step_taken_again_from_its_row_is_the_same(engine: str) -> None:
    """Whatever the lost one had written of it, and with the action that is held in the row."""
    made, arrays = engine_on(engine, 3)
    rng = np.random.default_rng(0)
    for number in range(60):
        envs, actions, repeats = range(1, 3), rng.integers(0, 6, 2).astype(np.uint8), rng.integers(0, 5, 2, np.uint8)
        before = arrays["rows"].copy()
        made.step(envs, actions, repeats)
        if number % 6 == 0:
            first = {name: array.copy() for name, array in arrays.items()}
            arrays["rows"][1:], arrays["screens"][1:], arrays["rewards"][1:] = before[1:], 9, 9
            made.restore()
            made.step(envs, actions, repeats)
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, first[name], err_msg=name)


def test_names_sizes_and_an_unknown_one(engine: str) -> None:
    made, arrays = engine_on(engine, 1)
    assert made.name == engine and made.state_bytes == STATE_BYTES[engine] == arrays["rows"].shape[1]
    assert all(size % 64 == 0 for size in STATE_BYTES.values()) and DEFAULT_ENGINE in ENGINES
    for wrong in (lambda: VectorEnv(1, 1, engine="stella"), lambda: LocalEnvs(engine="stella")):
        with pytest.raises(UsageError, match="the engine is one of .*, not 'stella'"):
            wrong()


@pytest.mark.parametrize("images", [(), ("final_screens",), ("courts", "final_screens")])
def test_images_that_no_engine_draws_are_refused(images: tuple[str, ...], engine: str) -> None:
    """Extra screens are drawn beside screens: without these the fast core would read beyond its arrays."""
    with pytest.raises(UsageError, match="screens or courts are drawn"):
        LocalEnvs(images=images, engine=engine)


def test_an_actor_refuses_envs_without_the_image_that_its_policy_sees() -> None:
    with pytest.raises(ValueError, match="sees courts, and these envs have none"):
        Actor(make_config("fast", {"num_envs": 1}), LocalEnvs())
