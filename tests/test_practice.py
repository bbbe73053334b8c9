"""Practice on the real emulator: where attempts begin and end, and that the game does not notice."""

import numpy as np
import pytest

from fastpong.pong import PongGames
from fastpong.practice import EVERY, FARTHEST, NEAREST, SHIFT_EARLIEST, SHIFT_LATEST, SHIFTED, Attempts


def test_the_game_goes_on_as_if_nothing_had_been() -> None:
    """Without sticky actions, with actions that depend on the step of the game alone; beyond the end of a game."""
    actions = np.random.default_rng(1).integers(0, 3, 1600).tolist()
    seen = []
    for attempts in (Attempts(0), Attempts(2), Attempts(3, after_wins=True)):
        games = PongGames([0], seed=3, sticky=0.0, actions=3)
        observation, _ = games.reset()
        rng = np.random.default_rng(attempts.number)
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
        assert (practised > 0) == (attempts.number > 0)
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
        games.step_group(0, rng.integers(0, 3, 1).tolist(), Attempts(attempts))
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
        games.step_group(0, rng.integers(0, 3, 1).tolist(), Attempts(3, after_wins=True))
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


def test_shifted_attempts_have_to_take_the_lost_ones_actions_sooner_or_later() -> None:
    games = PongGames([7], seed=5, actions=3)
    observation, _ = games.reset()
    rng = np.random.default_rng(0)
    point = [observation["screens"][0].tobytes()]  # screens since the point began, as it is played now
    chosen: list[int] = []  # and what was done
    lost: tuple[list[bytes], list[int]] = [], []
    plan: dict[int, int] = {}  # what had to be done in the present attempt, by step of the point
    offsets = {1: 0, -1: 0}
    attempts = shifted = 0
    for _ in range(12_000):
        planned = int(observation["planned"][0])
        practised = bool(observation["practising"][0])
        if planned:
            assert practised
            plan[len(chosen)] = planned - 1
        choice = planned - 1 if planned else int(rng.integers(3))
        games.step_group(0, [choice], Attempts(4, after_wins=True, shifted=0.5))
        reward, ended, screen = int(observation["rewards"][0]), observation["ended"][0], observation["screens"][0]
        if reward == 0 and not ended:
            point.append(screen.tobytes())
            chosen.append(choice)
            continue
        if practised:
            attempts += 1
            if plan:
                shifted += 1
                steps = sorted(plan)
                assert steps == list(range(steps[0], steps[0] + len(steps))) and len(steps) <= SHIFTED
                assert SHIFT_LATEST <= len(lost[1]) - steps[0] <= SHIFT_EARLIEST
                taken = [plan[step] for step in steps]
                matches = [at for at in offsets if lost[1][steps[0] + at : steps[-1] + 1 + at] == taken]
                assert matches
                for offset in matches:
                    offsets[offset] += 1
        if reward < 0 and len(chosen) >= EVERY + NEAREST:
            lost = point, chosen
        plan = {}
        if observation["practising"][0]:
            begins = [age for age in range(EVERY, len(lost[0]), EVERY) if lost[0][age] == screen.tobytes()]
            point, chosen = lost[0][: begins[0] + 1], lost[1][: begins[0]]
        else:
            point, chosen, lost = [screen.tobytes()], [], ([], [])
    assert attempts > 100 and 0.4 < shifted / attempts < 0.6
    assert min(offsets.values()) > 0.35 * shifted
