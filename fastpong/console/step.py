"""A step of many envs: sticky repeats, frames, screen, reward, end, and the begin of the next game.

`step_in_fast_core` is compiled as a whole. `step_in_plain_core` is its twin, and takes the steps that the fast core
cannot. What an env does depends on its own row and actions alone, not on which envs are stepped together.
"""

from typing import Any, NamedTuple

import numpy as np

from fastpong.arrays import I8, I16, I32, U8, U64
from fastpong.console import plain
from fastpong.console.controls import set_controls
from fastpong.console.court import ROM
from fastpong.console.drawing import BITS, COLOURS, NOTHING
from fastpong.console.fast import frame
from fastpong.console.state import byte, clip
from fastpong.courts import draw_court, screen_of
from fastpong.kernels.compile.jit import once
from fastpong.pong import ACTIONS, STAY, WINNING

_LOST, _WON = 13, 14  # indices of ``ram``: points of the computer and of the agent


class Envs(NamedTuple):
    """The arrays of n envs."""

    states: Any  # STATE (n,)
    words: I32  # (n, STATE_BYTES / 4) the same rows
    halves: I16  # (n, STATE_BYTES / 2) the same rows
    screens: Any  # SCREEN (n,) out; or none: then courts
    courts: U64  # (0, 160, 3) or (n, 160, 3) out
    pictures: Any  # PICTURE (n,): zeros, and `courts`, at first and whenever somebody else has written into those two
    rewards: I8  # (n,) out: points won minus lost
    ended: I8  # (n,) out: 1 where a game ended; state and screen are then the first ones of the next game


class Extras(NamedTuple):
    """Screens that somebody may want besides: n of each, or none."""

    final_screens: Any  # SCREEN (n or 0,) out: last screens of games that ended
    earlier_screens: Any  # SCREEN (n or 0,) out: screens of one frame before, black where a game begins
    pictures: Any  # PICTURE (n or 0,) of `earlier_screens`


class Rules(NamedTuple):
    """How games are played, and how they begin."""

    frame_skip: int  # frames of a step
    max_frames: int  # after which a game ends
    state: Any  # STATE (1,) with which a game begins
    screen: Any  # SCREEN (1,)
    court: U64  # (160, 3)


class Inputs(NamedTuple):
    """What players do in a step; n are the envs that are stepped."""

    actions: U8  # (n,) indices into `fastpong.pong.ACTIONS`, or STAY
    others: U8  # (n,) those of player B, on the left: NOOP, and the computer plays
    repeats: U8  # (n,) frames for which the action before is repeated
    select: int  # 1: SELECT is pressed
    reset: int  # 1: RESET is pressed


class Saved(NamedTuple):
    """Room for states to which the fast core may have to go back."""

    step: Any  # STATE (1,) before the step
    frame: Any  # STATE (1,) before the frame


@once
def is_over(s: Any, max_frames: int) -> bool:
    """Return whether a game has ended."""
    return bool(s.ram[_LOST] == WINNING or s.ram[_WON] == WINNING or s.frames >= max_frames)


@once
def points(s: Any) -> int:
    """Return points won minus lost."""
    return byte(s, _WON) - byte(s, _LOST)


@once
def begin_game(envs: Envs, extras: Extras, rules: Rules, env: int) -> None:
    """Put an env to the begin of a game."""
    envs.states[env] = rules.state[0]
    picture = envs.pictures[env]
    picture.uniform[:] = 0
    if len(envs.screens):
        envs.screens[env] = rules.screen[0]
    if len(envs.courts):
        envs.courts[env] = rules.court
        picture.court[:] = rules.court
    if len(extras.earlier_screens):
        extras.earlier_screens[env].words[:] = np.uint64(0)
        extras.pictures[env].uniform[:] = 0


@once
def end_game(envs: Envs, extras: Extras, rules: Rules, env: int) -> None:
    """Note that an env's game has ended, and begin the next one."""
    if len(extras.final_screens):
        extras.final_screens[env] = envs.screens[env]
    begin_game(envs, extras, rules, env)
    envs.ended[env] = 1


@once
def step_in_fast_core(
    envs: Envs,
    extras: Extras,
    rules: Rules,
    inputs: Inputs,
    saved: Saved,
    first: int,  # env of the first of the inputs
    begin: int,  # index of the input with which to begin
) -> int:
    """Step envs; raises `IndexError` for an action that is none.

    Returns how many inputs there are, or the index of one that the plain core has to step; its env is as it was.
    """
    has_final, has_earlier = len(extras.final_screens) > 0, len(extras.earlier_screens) > 0
    has_screens, has_courts, last = len(envs.screens) > 0, len(envs.courts) > 0, rules.frame_skip - 1
    shown = COLOURS if has_screens else BITS
    for i in range(begin, len(inputs.actions)):
        env, action = first + i, int(inputs.actions[i])
        other, repeat = int(inputs.others[i]), int(inputs.repeats[i])
        envs.rewards[env], envs.ended[env] = 0, 0
        if action == STAY:
            continue
        if action >= len(ACTIONS):
            raise IndexError("an action is an index into pong.ACTIONS, or STAY")
        clip(envs.words[env], envs.halves[env])
        s = envs.states[env]
        saved.step[0], points_before, difficulty = s, points(s), s.SWCHB >> 6
        if has_earlier and last == 0:
            extras.earlier_screens[env] = envs.screens[env]
            extras.pictures[env].uniform[:] = 0
        number, again = 0, False
        while True:  # with one call of `frame`, which is compiled into this function
            picture, screen = envs.pictures[env], rules.screen[0]  # into which no bits are drawn
            if has_screens:
                screen = envs.screens[env]
            drawn = shown if number == last or again else NOTHING
            if has_earlier and number == last - 1 and not again:
                picture, screen, drawn = extras.pictures[env], extras.earlier_screens[env], COLOURS
            if has_final and not again:
                saved.frame[0] = s
            now = s.held if number < repeat else action
            set_controls(s, now, other, inputs.select, inputs.reset, difficulty)
            if not frame(s, picture, screen, drawn):
                envs.states[env] = saved.step[0]
                return i
            s.frames += 1
            over = is_over(s, rules.max_frames)
            if over and has_final and not again and number < last:
                again = True  # the last screen was not drawn, but is wanted: the frame once more
                envs.states[env] = saved.frame[0]
            elif over or number == last:
                break
            else:
                number += 1
        if repeat < rules.frame_skip:
            s.held = action
        envs.rewards[env] = points(s) - points_before
        if is_over(s, rules.max_frames):
            end_game(envs, extras, rules, env)
        elif has_courts:
            envs.courts[env] = envs.pictures[env].court
    return len(inputs.actions)


def step_in_plain_core(envs: Envs, extras: Extras, rules: Rules, inputs: Inputs, first: int, i: int) -> None:
    """Step one env: index `i` of the inputs, ``first + i`` of the arrays."""
    env, action = first + i, int(inputs.actions[i])
    other, repeat = int(inputs.others[i]), int(inputs.repeats[i])
    clip(envs.words[env], envs.halves[env])
    s, has_screens = envs.states[env], len(envs.screens) > 0
    screen = _pixels(envs.screens)[env] if has_screens else screen_of(envs.courts[env])
    points_before, difficulty = points(s), int(s.SWCHB) >> 6
    for number in range(rules.frame_skip):
        if len(extras.earlier_screens) and number == rules.frame_skip - 1:
            extras.earlier_screens[env] = envs.screens[env]
        now = int(s.held) if number < repeat else action
        set_controls(s, now, other, inputs.select, inputs.reset, difficulty)
        plain.frame(s, ROM, screen)
        s.frames += 1
        if is_over(s, rules.max_frames):
            break
    if repeat < rules.frame_skip:
        s.held = action
    envs.rewards[env], envs.ended[env] = np.int64(points(s) - points_before).astype(np.int8), 0  # any byte is a score
    envs.pictures[env].uniform[:] = 0
    if len(envs.courts):
        draw_court(screen, envs.courts[env])
        envs.pictures[env].court[:] = envs.courts[env]
    if len(extras.pictures):
        extras.pictures[env].uniform[:] = 0
    if is_over(s, rules.max_frames):
        end_game(envs, extras, rules, env)


def _pixels(screens: Any) -> U8:
    """Return screens of dtype `SCREEN`, (n,), as uint8 (n, 210, 160)."""
    return screens["words"].view(np.uint8)  # type: ignore[no-any-return]
