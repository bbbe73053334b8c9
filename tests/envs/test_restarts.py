"""Restarts on real emulators, against a plain reading of the rule that keeps every state of a point."""

from typing import Any

import numpy as np
import pytest
from ale_py import Action

from fastpong.envs.emulators import ACTIONS, ATTEMPTS_UNIT, Emulators
from fastpong.envs.layouts import state_layout
from fastpong.envs.memory import zeros
from fastpong.envs.pool import new_emulator
from fastpong.errors import EnvError
from fastpong.noise import sticky_repeats
from fastpong.pong import ATTEMPT, ENDED, GOES_BACK

Seen = list[tuple[int, int, int]]
"""Reward, ``ended`` and a checksum of the screen after each step of an env."""


def by_the_rule(actions: list[int], repeats: list[int], attempts: int) -> Seen:
    """What an env shows that takes these actions, each after so many frames of the one before."""
    emulator = new_emulator()
    emulator.reset_game()
    begin, begin_screen = (emulator.cloneState(), Action.NOOP), emulator.getScreen()
    last, attempt, game = Action.NOOP, 0, begin
    point: list[Any] = []  # states after its steps
    seen = []
    for choice, repeat in zip(actions, repeats, strict=True):
        reward = 0
        for frame in range(4):
            last = last if frame < repeat else ACTIONS[choice]
            reward += emulator.act(last)
        over, screen = emulator.game_over(), emulator.getScreen()
        ended = ATTEMPT if attempt else ENDED if over else 0
        if over:
            screen, last = begin_screen, begin[1]
            emulator.restoreState(begin[0])
        back = 12 * (len(point) // 12 - attempt - 1)  # steps of the point before which the next attempt begins
        if reward < 0 and attempt < attempts and back > 0:
            game = game if attempt else (emulator.cloneState(), last)
            state, last = point[back - 1]
            emulator.restoreState(state)
            attempt, ended = attempt + 1, ended | GOES_BACK
        elif reward and attempt:
            state, last = game
            emulator.restoreState(state)
            attempt, ended, point = 0, ended | ENDED, []
        elif reward:
            point = []
        elif not attempt:
            point.append((emulator.cloneState(), last))
        seen.append((reward, ended, hash(screen.tobytes())))
    return seen


def play(emulators: Emulators, actions: Any, attempts: int) -> list[Seen]:
    """What the envs show, each for itself."""
    seen: list[Seen] = [[] for _ in emulators.env_ids]
    for row in actions:
        emulators.step_group(0, (row + ATTEMPTS_UNIT * attempts).tolist())
        shown = emulators.arrays
        for i, one in enumerate(seen):
            screen = hash(shown["screens"][i].tobytes())
            one.append((int(shown["rewards"][i]), int(shown["ended"][i]), screen))
    return seen


def random_actions(steps: int) -> Any:
    """Actions (steps, 2)."""
    return np.random.default_rng(2).integers(0, 3, (steps, 2))


@pytest.mark.parametrize("attempts", [1, 4])
def test_attempts_are_those_of_the_rule(attempts: int) -> None:
    """Over several games, with sticky actions, at first on an emulator that envs share."""
    actions = random_actions(4000)
    emulators = Emulators([3, 8], seed=4, num_actions=3)
    emulators.reset()
    for i, seen in enumerate(play(emulators, actions, attempts)):
        repeats = sticky_repeats(4, np.array([3, 8]), 0, 4000, 4, 0.25)[:, i].tolist()
        assert seen == by_the_rule(actions[:, i].tolist(), repeats, attempts)
        ends = [ended for _, ended, _ in seen]
        assert {ENDED, GOES_BACK, ATTEMPT, ATTEMPT | ENDED} <= {*ends} | {end & ~GOES_BACK for end in ends}
        assert (ATTEMPT | GOES_BACK in ends) == (attempts > 1)


def test_no_more_attempts_when_they_are_off() -> None:
    """Those of a point that was lost before go on, and then all is as if there were none."""
    emulators = Emulators([3, 8], seed=4, num_actions=3)
    emulators.reset()
    actions = random_actions(2000)
    before, after = play(emulators, actions[:600], 4), play(emulators, actions[600:], 0)
    assert any(ended & GOES_BACK for one in before for _, ended, _ in one)
    for one in after:
        assert all(ended in (0, ENDED) for _, ended, _ in one[400:])


def test_saved_in_the_middle_they_go_on_bit_for_bit() -> None:
    actions = random_actions(1500)
    emulators = Emulators([3, 8], seed=4, num_actions=3)
    emulators.reset()
    play(emulators, actions[:90], 4)
    attempts = set()
    for begin in range(90, 1200, 37):
        saved = zeros(state_layout(2))
        emulators.save(saved)
        attempts |= {*saved["restarts"][:, 1].tolist()}
        expected = play(emulators, actions[begin : begin + 37], 4)
        other = Emulators([8, 3], seed=4, num_actions=3)
        other.reset()
        other.restore({name: array[::-1] for name, array in saved.items()})
        assert play(other, actions[begin : begin + 37, ::-1], 4) == expected[::-1]
    assert attempts == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("numbers", [[12, 0, 0], [3, 2, 0], [3, 0, 4], [3, 4, 4]])
def test_numbers_that_belong_to_no_restarts_are_refused(numbers: list[int]) -> None:
    emulators, states = Emulators([5], seed=4), zeros(state_layout(1))
    emulators.reset()
    emulators.save(states)
    states["restarts"][0] = numbers
    with pytest.raises(EnvError, match="saved state of env 5"):
        emulators.restore(states)
