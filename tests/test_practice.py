"""Practice on the real emulator: where attempts begin and end, and that the game does not notice."""

import numpy as np
import pytest

from fastpong.pong import PongGames
from fastpong.practice import EVERY, FARTHEST, NEAREST


def test_the_game_goes_on_as_if_nothing_had_been() -> None:
    """Without sticky actions, with actions that depend on the step of the game alone; beyond the end of a game."""
    actions = np.random.default_rng(1).integers(0, 3, 1600).tolist()
    seen = []
    for attempts, after_wins in ((0, False), (2, False), (3, True)):
        games = PongGames([0], seed=3, sticky=0.0, actions=3)
        observation, _ = games.reset()
        rng = np.random.default_rng(attempts)
        screens: list[bytes] = []
        rewards: list[int] = []
        ends: list[bool] = []
        practised = 0
        while len(rewards) < len(actions):
            if observation["practising"][0]:
                games.step_group(0, rng.integers(0, 3, 1).tolist(), attempts, after_wins)
                practised += 1
            else:
                screens.append(observation["screens"][0].tobytes())
                games.step_group(0, [actions[len(rewards)]], attempts, after_wins)
                rewards.append(int(observation["rewards"][0]))
                ends.append(observation["ended"][0] == 1)
        seen.append((screens, rewards, ends))
        assert (practised > 0) == (attempts > 0)
    assert seen[0] == seen[1] == seen[2]
    assert sum(seen[0][2]) >= 1


@pytest.mark.parametrize("attempts", [1, 4])
def test_attempts_begin_shortly_before_the_loss_and_end_with_a_win(attempts: int) -> None:
    games = PongGames([7], seed=5, actions=3)
    observation, _ = games.reset()
    rng = np.random.default_rng(0)
    point = [observation["screens"][0].tobytes()]  # screens since the point began, as it is played now
    tries = won = gaps = 0
    for _ in range(9000):
        practised = bool(observation["practising"][0])
        games.step_group(0, rng.integers(0, 3, 1).tolist(), attempts)
        reward, ended, screen = int(observation["rewards"][0]), observation["ended"][0], observation["screens"][0]
        practising = bool(observation["practising"][0])
        if reward == 0 and not ended:
            assert practising == practised
            point.append(screen.tobytes())
            continue
        tries = tries + 1 if practised else 0
        lost_at = len(point) - 1  # steps before the one that lost it
        usable = [age for age in range(EVERY, lost_at + 1, EVERY) if NEAREST <= lost_at - age <= FARTHEST]
        assert practising == (reward < 0 and tries < attempts and bool(usable))
        assert ended == (2 if practised or practising else 0) or (ended == 1 and not practised)
        won += practised and reward > 0
        if practising:
            begins = [age for age in usable if point[age] == screen.tobytes()]
            assert begins  # a ball may be out of sight on several of them
            del point[begins[0] + 1 :]
            gaps += len(usable) > 1
        else:
            point = [screen.tobytes()]
    assert won > 0 and gaps > 10


def test_attempts_may_go_on_after_a_win() -> None:
    """Then a lost point is tried again as often as is said, each time from a moment before the loss of the last one."""
    games = PongGames([7], seed=5, actions=3)
    observation, _ = games.reset()
    rng = np.random.default_rng(0)
    point = [observation["screens"][0].tobytes()]  # screens since the point began, as it is played now
    lost: list[bytes] = []  # those of the point, or attempt, that was lost last
    tries = won = 0
    for _ in range(9000):
        practised = bool(observation["practising"][0])
        games.step_group(0, rng.integers(0, 3, 1).tolist(), 3, True)
        reward, ended, screen = int(observation["rewards"][0]), observation["ended"][0], observation["screens"][0]
        practising = bool(observation["practising"][0])
        if reward == 0 and not ended:
            point.append(screen.tobytes())
            continue
        tries = tries + 1 if practised else 0
        if reward < 0 and len(point) - 1 >= EVERY + NEAREST:  # a moment is near enough for certain
            lost = point
        assert not practised or practising == (tries < 3)
        won += practised and practising and reward > 0
        if practising:
            begins = [age for age in range(EVERY, len(lost), EVERY) if lost[age] == screen.tobytes()]
            assert begins and any(NEAREST <= len(lost) - 1 - age <= FARTHEST for age in begins)
            point = lost[: begins[0] + 1]
        else:
            point, lost = [screen.tobytes()], []
    assert won > 0
