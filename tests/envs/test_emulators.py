from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from ale_py import Action

from fastpong.envs.emulators import ACTIONS, Emulators, observation_space, state_layout
from fastpong.envs.memory import zeros
from fastpong.errors import EnvError
from fastpong.noise import sticky_repeats


def play(emulators: Emulators, actions: npt.NDArray[Any], start: bool = True) -> tuple[Any, Any, Any]:
    """Step through actions (steps, n): rewards and ends (steps, n), and a checksum of each step's screens."""
    if start:
        emulators.reset()
    rewards, ended, sums = [], [], []
    for row in actions:
        for group, members in enumerate(emulators.groups):
            emulators.step_group(group, row[members.start : members.stop].tolist())
        observation = emulators.arrays
        rewards.append(observation["rewards"].copy())
        ended.append(observation["ended"].copy())
        sums.append([hash(screen.tobytes()) for screen in observation["screens"]])
    return np.array(rewards), np.array(ended), np.array(sums)


def random_actions(steps: int, envs: int, num_actions: int = 2) -> npt.NDArray[np.int64]:
    return np.random.default_rng(3).integers(0, num_actions, (steps, envs))


def test_scores_of_whole_games_match_gymnasium_with_sticky_actions() -> None:
    """Frame by frame against the registered environment, to the last point of several games."""
    steps = 2600
    actions = random_actions(steps, 1, 3)
    rewards, ended, _ = play(Emulators([5], seed=11, num_actions=3), actions)
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
    ends = np.flatnonzero(ended)
    comp = [float(part.sum()) for part in np.split(rewards[:, 0], ends + 1)[: len(ends)]]
    assert len(scores) >= 2
    assert comp == scores
    env.close()


def test_without_sticky_actions_every_screen_is_gymnasiums() -> None:
    """Beyond the end of a game: the next one, which ours begins from a saved state, is the one after a reset."""
    actions = random_actions(1500, 1)
    emulators = Emulators([0], repeat_action_probability=0.0)
    env: Any = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, full_action_space=True)
    screen, _ = env.reset(seed=1)
    observation, _ = emulators.reset()
    np.testing.assert_array_equal(emulators.screen_rgb(), screen)
    ends = 0
    for action in actions:
        screen, reward, over, truncated, _ = env.step(ACTIONS[int(action[0])].value)
        emulators.step(action)
        assert observation["rewards"][0] == reward and not truncated
        assert observation["ended"][0] == over
        if over:
            env.reset()
            ends += 1
        else:
            np.testing.assert_array_equal(emulators.screen_rgb(), screen)
        np.testing.assert_array_equal(observation["screens"][0], env.unwrapped.ale.getScreen())
    assert ends >= 1
    env.close()


def test_up_moves_the_paddle_up() -> None:
    tops = []
    for action in (0, 1):
        emulators = Emulators([0], repeat_action_probability=0.0)
        emulators.reset()
        for _ in range(40):
            screen = emulators.step(np.array([action]))[0]["screens"][0]
        tops.append(int(np.flatnonzero(screen[34:194, 140] != 34).mean()))  # the agent's paddle is on the right
    assert tops[0] < tops[1] - 50


def test_an_env_does_not_notice_its_company() -> None:
    """Alone, or among others with turns on one emulator and in two groups: the same games."""
    actions = random_actions(1100, 5)
    together = play(Emulators([0, 1, 2, 3, 4], seed=2, splits=[2]), actions)
    assert together[1].any()
    for env in (1, 4):
        alone = play(Emulators([env], seed=2), actions[:, env : env + 1])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a[:, 0], b[:, env])
    assert (together[2][:, 0] != together[2][:, 1]).any()


@pytest.mark.parametrize("before", [0, 2, 700])
def test_a_restored_env_goes_on_bit_for_bit(before: int) -> None:
    """With emulators still shared and long settled, over the end of games, into other company."""
    actions = random_actions(before + 700, 3)
    emulators = Emulators([0, 1, 2], seed=4)
    play(emulators, actions[:before])
    saved = zeros(state_layout(3))
    emulators.save(saved)
    expected = play(emulators, actions[before:], start=False)
    other = Emulators([2, 0], seed=4)
    other.reset()
    other.restore({name: array[[2, 0]] for name, array in saved.items()})
    comp = play(other, actions[before:][:, [2, 0]], start=False)
    for a, b in zip(comp, expected, strict=True):
        np.testing.assert_array_equal(a, b[:, [2, 0]])
    if before == 700:
        assert expected[1].any()


@pytest.mark.parametrize(
    ("place", "value"),
    [(slice(None), 0), (slice(78, 81), 255), (slice(6584, 6586), ord("9")), (slice(7678, 7682), 1)],
    ids=["all", "length for which ALE takes gigabytes", "place in the noise outside of it", "length of a name"],
)
def test_bytes_that_are_no_state_are_refused(place: slice, value: int) -> None:
    emulators, states = Emulators([5], seed=4), zeros(state_layout(1))
    emulators.reset()
    emulators.save(states)
    emulators.restore(states)
    states["emulators"][0, place] = value
    with pytest.raises(EnvError, match="saved state of env 5"):
        emulators.restore(states)


def test_seeding_again_repeats_the_run() -> None:
    actions = random_actions(150, 2)
    emulators = Emulators([0, 1], seed=9)
    first = play(emulators, actions)
    emulators.reset(seed=9)
    np.testing.assert_array_equal(play(emulators, actions, start=False)[2], first[2])


def test_observations_lie_in_their_space() -> None:
    emulators = Emulators([0, 1], rows=3)
    observation, _ = emulators.reset()
    assert observation["ended"].all()
    assert observation_space(3).contains(observation)
    assert observation_space(3).contains(emulators.step(np.array([0, 1, 1]))[0])
