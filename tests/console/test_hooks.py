"""The functions that stand in for loops of the cartridge, against these loops in the plain core.

They begin in states that play never reaches: objects anywhere, also where a write cuts through them, and at any height.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastpong.console import court, score
from fastpong.console import tia as plain_tia
from fastpong.console.controls import NOOP, boot, set_controls
from fastpong.console.court import ROM
from fastpong.console.cpu import instruction
from fastpong.console.drawing import BITS, COLOURS, as_screens
from fastpong.console.fast_tia import begin_picture, catch_up
from fastpong.console.masks import PICTURE
from fastpong.console.plain import frame
from fastpong.console.registers import CLOCKS, TOP, begin_frame
from fastpong.console.state import STATE, STATE_BYTES, records
from fastpong.courts import courts_of
from fastpong.kernels.compile.jit import once
from fastpong.pong import COURT_TOP, SCREEN

TRIALS = 400

# Where in RAM the program keeps what it draws.
PADDLE, MASKS, TOPS, PLAYFIELD = 0x00, slice(0x25, 0x29), slice(0x32, 0x37), np.arange(0x1B, 0x21, 2)
DIGITS, SHOWN = np.arange(0x45, 0x4D, 2), 0x10
PAGE = 0xF7
"""The upper byte of addresses of graphics."""


@once
def run_to(s: Any, screen: Any, address: int) -> None:
    """Emulate on the plain core up to an address."""
    while s.PC != address and not s.frame_over:
        instruction(s, ROM, screen)


class Twins:
    """A state and a screen for either core; the fast one draws its colours or its court's bits."""

    def __init__(self, row: Any, screen: Any, trial: int = 0):
        self.rows, self.screens = np.stack([row, row]), np.stack([screen, screen])
        self.plain, self.fast = records(self.rows)
        self.picture, self.screen = np.zeros(1, PICTURE)[0], as_screens(self.screens)[1]
        self.drawn = (COLOURS, BITS)[trial % 2]
        self.picture.court[:] = courts_of(screen[None])[0]
        begin_picture(self.picture, self.drawn)

    def check(self, lines: slice) -> None:
        """Draw both up to the end of a line that is over, and compare everything; of the images some lines."""
        clock = 3 * int(self.plain.cycle)
        plain_tia.catch_up(self.plain, self.screens[0], clock)
        catch_up(self.fast, self.picture, self.screen, clock)
        for name in STATE.names or ():
            np.testing.assert_array_equal(self.fast[name], self.plain[name], err_msg=name)
        if self.drawn == COLOURS:
            np.testing.assert_array_equal(self.screens[1, lines], self.screens[0, lines])
        else:
            rows = slice(*(max(0, y - COURT_TOP) for y in (lines.start, lines.stop)))
            np.testing.assert_array_equal(self.picture.court[rows], courts_of(self.screens[:1])[0, rows])


@pytest.fixture(scope="module")
def played() -> tuple[Any, Any]:
    """A row and a screen in the middle of a game."""
    rows, screen = np.zeros((1, STATE_BYTES), np.uint8), np.zeros(SCREEN, np.uint8)
    s = records(rows)[0]
    boot(frame, s, ROM, screen)
    for number in range(400):
        set_controls(s, number // 40 % 3, NOOP, 0, 0, 0)
        frame(s, ROM, screen)
    return rows[0], screen


def at(played: tuple[Any, Any], address: int) -> tuple[Any, Any]:
    """Return a row and a screen of the next frame at the first arrival at an address."""
    row, screen = played[0].copy(), played[1].copy()
    s = records(row[None])[0]
    set_controls(s, NOOP, NOOP, 0, 0, 0)
    begin_frame(s)
    run_to(s, screen, address)
    assert s.PC == address
    return np.frombuffer(s.tobytes(), np.uint8), screen


def scatter(s: Any, rng: np.random.Generator) -> None:
    """Put the objects anywhere, of any shape, and turn the paddles."""
    s.position = rng.integers(0, 160, 5)
    s.RESMP0, s.RESMP1, s.VDELBL = 2 * rng.integers(2), 2 * rng.integers(2), rng.integers(2)
    s.NUSIZ0, s.NUSIZ1 = (rng.integers(8) | rng.integers(4) << 4 for _ in range(2))
    s.REFP0, s.REFP1 = 8 * rng.integers(2), 8 * rng.integers(2)
    s.CTRLPF = rng.choice([0x15, 0x11, 0x05, 0x35, 0x13, 0x10, 0x17, 0x01])
    s.mirrored, s.comb = rng.integers(2), rng.integers(2)
    s.COLUP0, s.COLUP1, s.COLUPF, s.COLUBK = 2 * rng.integers(0, 128, 4)
    s.resistance = rng.integers(27_450, 790_197, 2) * (rng.random() > 0.1)
    s.dumped = rng.random() < 0.1
    if rng.random() < 0.5:
        s.dump_cycle = rng.integers(-20_000, 9_000)


def test_court(played: tuple[Any, Any]) -> None:
    """Also with masks that are no power of two, rows of other playfields, and paddles that never charge."""
    row, screen = at(played, court.AT)
    taken = 0
    for trial in range(TRIALS):
        twins = Twins(row, screen, trial)
        for s in (twins.plain, twins.fast):
            own = np.random.default_rng((3, trial))
            scatter(s, own)
            s.ram[TOPS] = own.integers(0, 256, 5)
            masks = np.array([0xF0, 0xF8, 0xFC, 0xE0, 0xF2, 0xFF, 0xFE, 0x00, 0x80, own.integers(256)])
            s.ram[MASKS], s.ram[PADDLE] = own.choice(masks, 4), own.integers(2)
            if own.random() < 0.5:
                s.ram[PLAYFIELD], s.ram[PLAYFIELD + 1] = own.integers(0, 228, 3), PAGE
        if not court.draw_court(twins.fast, twins.picture, twins.screen):
            continue
        taken += 1
        run_to(twins.plain, twins.screens[0], court.EXIT)
        twins.check(slice(57 - TOP, 239 - TOP))
    assert taken > TRIALS // 2


def test_score(played: tuple[Any, Any]) -> None:
    """Also with other digits, colours, and without the right player's; up to the blank lines after it.

    The hook draws its last line to the end, a dozen cycles before the code gets there: LDY, STA PF0.
    """
    rng, (row, screen) = np.random.default_rng(4), at(played, score.SCORE_AT)
    for trial in range(TRIALS // 4):
        twins = Twins(row, screen, trial)
        digits, colours, shown = rng.integers(0, 0xFC, 4), 2 * rng.integers(0, 128, 4), rng.choice([0, 0xFF, 0x0F])
        for s in (twins.plain, twins.fast):
            s.ram[DIGITS], s.ram[SHOWN] = digits, shown
            s.COLUP0, s.COLUP1, s.COLUPF, s.COLUBK = colours
        assert score.draw_score(twins.fast, twins.picture, twins.screen)
        twins.fast.cycle += 2
        twins.fast.Y = 2
        assert score.draw_blank_lines(twins.fast, twins.picture, twins.screen)
        run_to(twins.plain, twins.screens[0], score.BLANK_EXIT)
        twins.check(slice(0, 22))


def test_blank_lines(played: tuple[Any, Any]) -> None:
    """Also with objects that the first of them ends in mid-line."""
    rng, (row, screen) = np.random.default_rng(5), at(played, score.SCORE_EXIT)
    for trial in range(TRIALS // 4):
        twins, lines = Twins(row, screen, trial), rng.integers(1, 40)
        for s in (twins.plain, twins.fast):
            own = np.random.default_rng((5, trial))
            scatter(s, own)
            s.PC, s.Y = score.BLANK_AT, lines
            s.GRP0, s.GRP1, s.PF = own.integers(256), own.integers(256), own.integers(1 << 20)
            s.ENAM0, s.ENAM1, s.ENABL = 2 * own.integers(0, 2, 3)
        assert score.draw_blank_lines(twins.fast, twins.picture, twins.screen)
        run_to(twins.plain, twins.screens[0], score.BLANK_EXIT)
        twins.check(slice(0, (3 * int(twins.plain.cycle) - int(twins.plain.frame_start)) // CLOCKS - TOP))


@pytest.mark.parametrize(
    ("address", "hook", "change"),
    [
        (court.AT, court.draw_court, {"X": 0x28}),
        (court.AT, court.draw_court, {"D": 1}),
        (court.AT, court.draw_court, {"VDELP0": 1}),
        (score.SCORE_AT, score.draw_score, {"GRP0": 1}),
        (score.SCORE_AT, score.draw_score, {"CTRLPF": 1}),
        (score.BLANK_AT, score.draw_blank_lines, {"Y": 0}),
    ],
)
def test_they_step_aside(
    played: tuple[Any, Any], address: int, hook: Callable[..., bool], change: dict[str, int]
) -> None:
    """Whatever they do not foresee, they leave to the code."""
    row, screen = at(played, address)
    twins = Twins(row, screen)
    for name, value in change.items():
        twins.fast[name] = value
    assert not hook(twins.fast, twins.picture, twins.screen)
