from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from ale_py import Action

from fastpong.noise import sticky_repeats
from fastpong.pong import ACTIONS, PongGames, space_of
from fastpong.practice import NO_PRACTICE, Attempts


def play(
    games: PongGames, actions: npt.NDArray[Any], start: bool = True, attempts: Attempts = NO_PRACTICE
) -> tuple[Any, Any, Any]:
    """Step through actions (steps, n): rewards and ends (steps, n), and a checksum of each step's screens.

    Where an action is planned, that one is taken.
    """
    if start:
        games.reset()
    rewards, ended, sums = [], [], []
    for row in actions:
        for group, members in enumerate(games.groups):
            planned = games.arrays["planned"][members.start : members.stop]
            chosen = np.where(planned > 0, planned - 1, row[members.start : members.stop])
            games.step_group(group, chosen.tolist(), attempts)
        observation = games.arrays
        rewards.append(observation["rewards"].copy())
        ended.append(observation["ended"].copy())
        sums.append([hash(screen.tobytes()) for screen in observation["screens"]])
    return np.array(rewards), np.array(ended), np.array(sums)


def random_actions(steps: int, games: int, choices: int = 2) -> npt.NDArray[np.int64]:
    return np.random.default_rng(3).integers(0, choices, (steps, games))


def test_scores_of_whole_games_match_gymnasium_with_sticky_actions() -> None:
    """Frame by frame against the registered environment, to the last point of several games."""
    steps = 2600
    actions = random_actions(steps, 1, 3)
    rewards, ended, _ = play(PongGames([5], seed=11, actions=3), actions)
    repeats = sticky_repeats(11, np.array([5]), 0, steps, 4, 0.25)[:, 0]
    env = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0, full_action_space=True)
    env.reset(seed=0)
    held, scores, score, over = Action.NOOP, [], 0.0, False
    for action, repeat in zip(actions[:, 0].tolist(), repeats.tolist(), strict=True):
        for frame in range(4):
            if frame >= repeat:
                held = ACTIONS[action]
            if not over:
                _, reward, over, truncated, _ = env.step(held.value)
                score += float(reward)
                assert not truncated
        if over:
            scores.append(score)
            env.reset()
            held, score, over = Action.NOOP, 0.0, False
    ends = np.flatnonzero(ended)
    comp = [float(part.sum()) for part in np.split(rewards[:, 0], ends + 1)[: len(ends)]]
    assert len(scores) >= 2
    assert comp == scores
    env.close()


def test_without_sticky_actions_every_screen_is_gymnasiums() -> None:
    """Beyond the end of a game: the next one, which ours begins from a saved state, is the one after a reset."""
    actions = random_actions(1500, 1)
    games = PongGames([0], sticky=0.0)
    env: Any = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, full_action_space=True)
    screen, _ = env.reset(seed=1)
    observation, _ = games.reset()
    np.testing.assert_array_equal(games.screen_rgb(), screen)
    ends = 0
    for action in actions:
        screen, reward, over, truncated, _ = env.step(ACTIONS[int(action[0])].value)
        games.step(action)
        assert observation["rewards"][0] == reward and not truncated
        assert observation["ended"][0] == over
        if over:
            env.reset()
            ends += 1
        else:
            np.testing.assert_array_equal(games.screen_rgb(), screen)
        np.testing.assert_array_equal(observation["screens"][0], env.unwrapped.ale.getScreen())
    assert ends >= 1
    env.close()


def test_up_moves_the_paddle_up() -> None:
    tops = []
    for action in (0, 1):
        games = PongGames([0], sticky=0.0)
        games.reset()
        for _ in range(40):
            screen = games.step(np.array([action]))[0]["screens"][0]
        tops.append(int(np.flatnonzero(screen[34:194, 140] != 34).mean()))  # the agent's paddle is on the right
    assert tops[0] < tops[1] - 50


def test_a_game_does_not_notice_its_company() -> None:
    """Alone, or among others with turns on one emulator and in two groups: the same game."""
    actions = random_actions(1100, 5)
    together = play(PongGames([0, 1, 2, 3, 4], seed=2, splits=[2]), actions)
    assert together[1].any()
    for game in (1, 4):
        alone = play(PongGames([game], seed=2), actions[:, game : game + 1])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a[:, 0], b[:, game])
    assert (together[2][:, 0] != together[2][:, 1]).any()


@pytest.mark.parametrize(
    ("before", "attempts"),
    [(0, Attempts(2)), (2, Attempts(2)), (700, Attempts(2, shifted=0.5)), (700, Attempts(2, True, 1.0))],
)
def test_a_restored_game_goes_on_bit_for_bit(before: int, attempts: Attempts) -> None:
    """With emulators still shared and long settled, over the end of games, amid practice, into other company."""
    actions = random_actions(before + 700, 3)
    games = PongGames([0, 1, 2], seed=4)
    play(games, actions[:before], attempts=attempts)
    saved = {state[0]: state[1:] for state in games.snapshot()}
    expected = play(games, actions[before:], start=False, attempts=attempts)
    other = PongGames([2, 0], seed=4)
    other.reset()
    other.restore(saved)
    comp = play(other, actions[before:][:, [2, 0]], start=False, attempts=attempts)
    for a, b in zip(comp, expected, strict=True):
        np.testing.assert_array_equal(a, b[:, [2, 0]])
    if before == 700:
        assert expected[1].any()


def test_seeding_again_repeats_the_run() -> None:
    actions = random_actions(150, 2)
    games = PongGames([0, 1], seed=9)
    first = play(games, actions)
    games.reset(seed=9)
    np.testing.assert_array_equal(play(games, actions, start=False)[2], first[2])


def test_observations_lie_in_their_space() -> None:
    games = PongGames([0, 1], slots=3)
    observation, _ = games.reset()
    assert observation["ended"].all()
    assert space_of(3).contains(observation)
    assert space_of(3).contains(games.step(np.array([0, 1, 1]))[0])
