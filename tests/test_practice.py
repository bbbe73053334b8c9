"""Practice on the real emulator: where attempts begin and end, and that the game does not notice."""

import numpy as np
import pytest

from fastpong.pong import PongGames
from fastpong.practice import EVERY, FARTHEST, NEAREST


def test_the_game_goes_on_as_if_nothing_had_been() -> None:
    """Without sticky actions, with actions that depend on the step of the game alone; beyond the end of a game."""
    actions = np.random.default_rng(1).integers(0, 3, 1600).tolist()
    seen = []
    for attempts in (0, 2):
        games = PongGames([0], seed=3, sticky=0.0, actions=3)
        observation, _ = games.reset()
        rng = np.random.default_rng(attempts)
        screens: list[bytes] = []
        rewards: list[int] = []
        ends: list[bool] = []
        practised = 0
        while len(rewards) < len(actions):
            if observation["practising"][0]:
                games.step_group(0, rng.integers(0, 3, 1).tolist(), attempts)
                practised += 1
            else:
                screens.append(observation["screens"][0].tobytes())
                games.step_group(0, [actions[len(rewards)]], attempts)
                rewards.append(int(observation["rewards"][0]))
                ends.append(observation["ended"][0] == 1)
        seen.append((screens, rewards, ends))
        assert (practised > 0) == (attempts > 0)
    assert seen[0] == seen[1]
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
