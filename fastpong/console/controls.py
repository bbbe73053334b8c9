"""What a player does with the console: turn paddles, press buttons and switches, switch it on.

Pong's cartridge swaps the paddles: that of player A, on the right of the screen, is at INPT1.
"""

from collections.abc import Callable
from typing import Any

from fastpong.arrays import U8
from fastpong.console.state import NEVER, PADDLE_HIGH, PADDLE_LOW, STATE
from fastpong.errors import UsageError
from fastpong.kernels.compile.jit import once, uncompiled
from fastpong.pong import ACTIONS

RIGHT, LEFT, NOOP, FIRE, RIGHTFIRE, LEFTFIRE = range(len(ACTIONS))

PADDLE_STEP = 23_000
"""Ohms by which ALE turns a paddle in a frame."""

MODE_RAM = 0x96 & 0x7F
"""Where Pong keeps its game variant, as an index of ``ram``."""

MODES, DIFFICULTIES = range(50), range(4)
"""Game variants of the cartridge, of which ALE knows the first two; and positions of the two difficulty switches."""

RESET_VECTOR = 0x1FFC
POWER_ON_FRAMES, RESET_FRAMES = 60, 4


@once
def turned(
    ohms: int,  # of a paddle
    action: int,  # an index into `ACTIONS`
) -> int:
    """Return the ohms of a paddle after an action."""
    if action == RIGHT or action == RIGHTFIRE:
        return max(ohms - PADDLE_STEP, PADDLE_LOW)
    if action == LEFT or action == LEFTFIRE:
        return min(ohms + PADDLE_STEP, PADDLE_HIGH)
    return int(ohms)


@once
def set_controls(
    s: Any,  # STATE
    action_a: int,  # of player A, an index into `ACTIONS`
    action_b: int,  # of player B
    select: int,  # 1: SELECT is pressed
    reset: int,  # 1: RESET is pressed
    difficulty: int,  # 0 … 3: bit 0 is the left player's switch, bit 1 the right player's
) -> None:
    """Set paddles, buttons and switches for the next frame."""
    s.paddle[0], s.paddle[1] = turned(s.paddle[0], action_a), turned(s.paddle[1], action_b)
    s.resistance[1], s.resistance[0] = s.paddle[0], s.paddle[1]
    fire_a = 0x40 if action_a >= FIRE else 0
    fire_b = 0x80 if action_b >= FIRE else 0
    s.SWCHA = 0xFF - fire_a - fire_b
    s.SWCHB = 0x3F - reset - 2 * select + (difficulty << 6)


def power_on(
    s: Any,  # STATE, a record
    rom: U8,  # (2048 or 4096,)
) -> None:
    """Switch the console on, as ALE does: what the real one finds by chance is 0, and paddles are in the middle."""
    for name in STATE.names or ():
        s[name] = 0
    s.S, s.timer, s.timer_shift, s.vsync_end, s.held = 255, 25, 6, NEVER, NOOP
    vector = RESET_VECTOR & len(rom) - 1
    s.PC = int(rom[vector]) | int(rom[vector + 1]) << 8
    s.paddle[:] = (PADDLE_LOW + PADDLE_HIGH) // 2


def boot(
    frame: Callable[[Any, U8, U8], Any],  # of a core: `plain.frame` or its twin
    s: Any,  # STATE, a record
    rom: U8,  # (2048,) Pong
    screen: U8,  # (210, 160) out
    mode: int = 0,  # one of `MODES`
    difficulty: int = 0,  # one of `DIFFICULTIES`
) -> None:
    """Switch the console on and begin a game as ALE does: wait, press RESET, press SELECT up to the mode, RESET again.

    Raises
    ------
    UsageError
        There is no such mode or difficulty.
    """
    if mode not in MODES or difficulty not in DIFFICULTIES:
        raise UsageError(f"Pong has the modes 0 … {MODES[-1]} and the difficulties 0 … {DIFFICULTIES[-1]}")

    def run(frames: int, select: int = 0, reset: int = 0) -> None:
        for _ in range(frames):
            uncompiled(set_controls)(s, NOOP, NOOP, select, reset, difficulty)
            frame(s, rom, screen)

    power_on(s, rom)
    run(POWER_ON_FRAMES)
    run(RESET_FRAMES, reset=1)
    while s.ram[MODE_RAM] != mode:
        run(2, select=1)
        run(1)
    run(2 * RESET_FRAMES, reset=1)
    s.frames = 0
