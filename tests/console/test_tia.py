"""The TIA: facts of the programmer's guide, one by one, with lines drawn by hand."""

from typing import Any

import numpy as np
import pytest

from fastpong.console import registers as r
from fastpong.console import tia
from fastpong.console.registers import CLOCKS, LINE_CYCLES, TOP, begin_frame
from tests.console.pair import console

BACKGROUND, PLAYFIELD, PLAYER_0, PLAYER_1 = 2, 4, 6, 8
"""Colours."""


class Tia:
    """A TIA at the begin of a frame, with a colour for each object; and its screen."""

    def __init__(self) -> None:
        self.s, self.screen = console()
        begin_frame(self.s)
        for register, value in (
            (r.COLUBK, BACKGROUND), (r.COLUPF, PLAYFIELD), (r.COLUP0, PLAYER_0), (r.COLUP1, PLAYER_1),
        ):  # fmt: skip
            self.write(register, value)

    def at(self, line: int, cycle: int) -> "Tia":
        """Go on to a cycle of a line."""
        self.s.cycle = line * LINE_CYCLES + cycle
        return self

    def write(self, *pairs: int) -> "Tia":
        """Write registers, given as register, value, register, value …, all at the present cycle."""
        for register, value in zip(pairs[::2], pairs[1::2], strict=True):
            tia.write_tia(self.s, self.screen, register, value)
        return self

    def read(self, register: int, last: int = 0) -> int:
        return tia.read_tia(self.s, self.screen, register, last)

    def line(self, number: int) -> Any:
        """Draw to the end of a line, and return its pixels."""
        tia.catch_up(self.s, self.screen, (number + 1) * CLOCKS)
        return self.screen[number - TOP]

    def where(self, colour: int, number: int = TOP) -> list[int]:
        """Return the x in a line that have a colour."""
        return np.flatnonzero(self.line(number) == colour).tolist()


def pixels(*begins: int, width: int = 1) -> list[int]:
    return [x + k for x in begins for k in range(width)]


@pytest.mark.parametrize(
    ("register", "value", "left"),
    [(r.PF0, 0x10, 0), (r.PF0, 0x80, 12), (r.PF1, 0x80, 16), (r.PF1, 0x01, 44), (r.PF2, 0x01, 48), (r.PF2, 0x80, 76)],
)
def test_playfield(register: int, value: int, left: int) -> None:
    """Four pixels for each bit; the right half repeats the left one, or reflects it."""
    assert Tia().write(register, value).where(PLAYFIELD) == pixels(left, left + 80, width=4)
    reflected = Tia().write(register, value, r.CTRLPF, 1)
    assert reflected.where(PLAYFIELD) == pixels(left, 156 - left, width=4)


@pytest.mark.parametrize(
    ("nusiz", "begins", "width"),
    [(0, (0,), 1), (1, (0, 16), 1), (2, (0, 32), 1), (3, (0, 16, 32), 1), (4, (0, 64), 1), (6, (0, 32, 64), 1),
     (5, (1,), 2), (7, (1,), 4)],
)  # fmt: skip
def test_copies_and_widths_of_a_player(nusiz: int, begins: tuple[int, ...], width: int) -> None:
    """The leftmost and the rightmost bit."""
    leftmost = Tia().write(r.NUSIZ0, nusiz, r.GRP0, 0x80)
    assert leftmost.where(PLAYER_0) == pixels(*begins, width=width)
    rightmost = [x + 7 * width for x in begins]
    assert Tia().write(r.NUSIZ0, nusiz, r.GRP0, 0x01).where(PLAYER_0) == pixels(*rightmost, width=width)
    reflected = Tia().write(r.NUSIZ0, nusiz, r.GRP0, 0x80, r.REFP0, 8)
    assert reflected.where(PLAYER_0) == pixels(*rightmost, width=width)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_widths_of_missile_and_ball(width: int) -> None:
    bits = {1: 0, 2: 0x10, 4: 0x20, 8: 0x30}[width]
    missile = Tia().write(r.NUSIZ1, bits | 4, r.ENAM1, 2)
    assert missile.where(PLAYER_1) == pixels(0, 64, width=width)
    assert Tia().write(r.CTRLPF, bits, r.ENABL, 2).where(PLAYFIELD) == pixels(0, width=width)


@pytest.mark.parametrize(("cycle", "player", "others"), [(0, 3, 2), (22, 3, 2), (23, 6, 5), (50, 87, 86), (75, 2, 1)])
def test_positions_after_a_reset(cycle: int, player: int, others: int) -> None:
    """Pixel 0 is drawn at clock 68; a player lags 5 pixels, a missile and the ball 4; in the blank 3 and 2."""
    for strobe, show, colour, x in (
        (r.RESP1, (r.GRP1, 0x80), PLAYER_1, player),
        (r.RESM1, (r.ENAM1, 2), PLAYER_1, others),
        (r.RESBL, (r.ENABL, 2), PLAYFIELD, others),
    ):
        chip = Tia().at(TOP, cycle).write(strobe, 0).at(TOP + 1, 0).write(*show)
        assert chip.where(colour, TOP + 1) == [x]


def test_a_reset_leaves_the_first_copy_out_in_its_line() -> None:
    chip = Tia().write(r.NUSIZ0, 1, r.GRP0, 0x80)
    chip.s.position[0] = 140  # the beam meets no copy of it
    chip.at(TOP, 40).write(r.RESP0, 0)
    first = 40 * 3 - 68 + 5
    assert chip.where(PLAYER_0) == [first + 16]
    assert chip.where(PLAYER_0, TOP + 1) == [first, first + 16]


def test_a_reset_does_not_stop_a_copy_that_is_being_drawn() -> None:
    chip = Tia().write(r.GRP0, 0xFF)
    chip.s.position[0] = 50
    chip.at(TOP, 40).write(r.RESP0, 0)  # at pixel 52
    assert chip.where(PLAYER_0) == pixels(50, width=8)
    assert chip.where(PLAYER_0, TOP + 1) == pixels(57, width=8)


@pytest.mark.parametrize(("nibble", "left"), [(0, 0), (1, 1), (7, 7), (8, -8), (15, -1)])
def test_motion(nibble: int, left: int) -> None:
    chip = Tia().write(r.ENABL, 2, r.HMBL, nibble << 4)
    chip.s.position[4] = 100
    chip.at(TOP, 3).write(r.HMOVE, 0).at(TOP + 1, 40).write(r.HMOVE, 0)  # the second moves nothing
    assert chip.where(PLAYFIELD) == chip.where(PLAYFIELD, TOP + 2) == [100 - left]
    chip.at(TOP + 3, 0).write(r.HMCLR, 0, r.HMOVE, 0)
    assert chip.where(PLAYFIELD, TOP + 3) == [100 - left]


def test_motion_leaves_the_screen_at_one_side_and_comes_back_at_the_other() -> None:
    chip = Tia().write(r.ENABL, 2, r.HMBL, 0x70).at(TOP, 0).write(r.HMOVE, 0)
    assert chip.where(PLAYFIELD) == [153]


def test_comb() -> None:
    """HMOVE blackens eight pixels of its line, or of the first line that is shown."""
    assert Tia().at(TOP, 20).write(r.HMOVE, 0).where(0) == pixels(0, width=8)
    assert Tia().at(TOP, 21).write(r.HMOVE, 0).where(0) == []
    chip = Tia().at(TOP, 75).write(r.HMOVE, 0)
    assert chip.where(0) == [] and chip.where(0, TOP + 1) == pixels(0, width=8) and chip.where(0, TOP + 2) == []
    assert Tia().at(3, 0).write(r.HMOVE, 0).where(0) == pixels(0, width=8)


@pytest.mark.parametrize("cycle", range(29, 37))
def test_delays(cycle: int) -> None:
    """The first pixel that shows a write."""
    clock = cycle * 3 - 68
    for register, value, colour, delay in (
        (r.COLUBK, 0x1E, 0x1E, 0),
        (r.VBLANK, 2, 0, 1),
        (r.PF1, 0xFF, PLAYFIELD, (4, 5, 2, 3)[cycle % 4]),
    ):
        assert Tia().at(TOP, cycle).write(register, value).where(colour)[0] == clock + delay
    wide = Tia().write(r.GRP0, 0x80)  # at pixel 0, and with copies 32 and 64 pixels after it
    wide.s.position[0] = clock + 7
    wide.at(TOP, cycle).write(r.NUSIZ0, 5)
    assert wide.where(PLAYER_0) == [clock + 7, clock + 8, clock + 9]  # one of the old width, two of the new


def test_vertical_delay() -> None:
    """What a write shows only when the other player is written."""
    chip = Tia().write(r.VDELP0, 1, r.VDELP1, 1, r.VDELBL, 1)
    chip.s.position[:] = 0, 50, 0, 0, 100
    chip.write(r.GRP0, 0x80, r.ENABL, 2)
    assert chip.where(PLAYER_0) == chip.where(PLAYFIELD) == []
    chip.at(TOP + 1, 0).write(r.GRP1, 0x80)
    assert chip.where(PLAYER_0, TOP + 1) == [0] and chip.where(PLAYFIELD, TOP + 1) == [100]
    assert chip.where(PLAYER_1, TOP + 1) == []
    chip.at(TOP + 2, 0).write(r.GRP0, 0)
    assert chip.where(PLAYER_0, TOP + 2) == [0] and chip.where(PLAYER_1, TOP + 2) == [50]


@pytest.mark.parametrize(("nusiz", "middle"), [(0, 4), (5, 8), (7, 16)])
def test_a_missile_locked_to_its_player(nusiz: int, middle: int) -> None:
    chip = Tia().write(r.NUSIZ0, nusiz, r.ENAM0, 2, r.RESMP0, 2)
    chip.s.position[0] = 30
    assert chip.where(PLAYER_0) == []
    chip.at(TOP + 1, 0).write(r.RESMP0, 0)
    assert chip.where(PLAYER_0, TOP + 1) == [30 + middle]


def test_what_is_in_front() -> None:
    def colours(control: int) -> list[int]:
        chip = Tia().write(r.PF0, 0xF0, r.PF2, 0xFF, r.CTRLPF, control, r.GRP0, 0xF0, r.GRP1, 0xFF)
        chip.s.position[:2] = 12, 12  # player 0 at 12 … 15, player 1 at 12 … 19, playfield at 0 … 15
        line = chip.line(TOP)
        return [int(line[x]) for x in (0, 12, 16, 80, 60)]

    assert colours(0) == [PLAYFIELD, PLAYER_0, PLAYER_1, PLAYFIELD, PLAYFIELD]
    assert colours(4) == [PLAYFIELD, PLAYFIELD, PLAYER_1, PLAYFIELD, PLAYFIELD]
    assert colours(2) == [PLAYER_0, PLAYER_0, PLAYER_1, PLAYER_1, PLAYER_0]


def test_collisions() -> None:
    """Each pair of objects has a bit, which stays until CXCLR."""
    objects = {
        "P0": (r.GRP0, 0xFF), "P1": (r.GRP1, 0xFF), "M0": (r.ENAM0, 2), "M1": (r.ENAM1, 2), "BL": (r.ENABL, 2),
        "PF": (r.PF0, 0x10),
    }  # fmt: skip
    latches = (
        ("M0 P1", "M0 P0"), ("M1 P0", "M1 P1"), ("P0 PF", "P0 BL"), ("P1 PF", "P1 BL"), ("M0 PF", "M0 BL"),
        ("M1 PF", "M1 BL"), ("BL PF", ""), ("P0 P1", "M0 M1"),
    )  # fmt: skip
    seen = []
    for register, pairs in enumerate(latches):
        for bit, pair in zip((0x80, 0x40), pairs, strict=True):
            if pair:
                chip = Tia().write(*(word for name in pair.split() for word in objects[name]))
                assert not any(chip.read(k) for k in range(8))
                chip.at(TOP + 1, 0)
                assert [chip.read(k) for k in range(8)] == [bit * (k == register) for k in range(8)]
                seen.append(set(pair.split()))
                chip.at(TOP + 1, 74).write(*(0 if k % 2 else objects[n][0] for n in pair.split() for k in range(2)))
                assert chip.read(register) == bit and chip.write(r.CXCLR, 0).read(register) == 0
    assert len({frozenset(pair) for pair in seen}) == 15


def test_nothing_collides_out_of_sight() -> None:
    chip = Tia().write(r.GRP0, 0xFF, r.ENABL, 2, r.VBLANK, 2).at(TOP + 5, 0)
    assert chip.read(r.CXP0FB) == 0
    chip.write(r.GRP0, 0, r.VBLANK, 0).at(TOP + 210, 0).write(r.GRP0, 0xFF).at(TOP + 230, 0)
    assert chip.read(r.CXP0FB) == 0


def test_pins_that_nobody_drives_keep_the_last_byte() -> None:
    assert Tia().read(r.CXPPMM, 0xFF) == 0x3F
    assert Tia().read(r.INPT4, 0x2A) == 0xAA  # a joystick's button, which is not pressed


def test_paddle() -> None:
    """The capacitor of 0.01 µF charges from when VBLANK stops emptying it: 1.6 · 100,000 Ω · 0.01 µF · 1.19 MHz."""
    chip = Tia()
    chip.s.resistance[:] = 100_000, 0
    chip.at(0, 10).write(r.VBLANK, 0x80)
    chip.at(1, 0)
    assert (chip.read(r.INPT0), chip.read(r.INPT1), chip.read(r.INPT2)) == (0, 0x80, 0x80)
    chip.at(2, 0).write(r.VBLANK, 0)
    charged = []
    for cycle in (1903, 1904, 1905):
        chip.s.cycle = 2 * LINE_CYCLES + cycle
        charged.append(chip.read(r.INPT0))
    assert charged == [0, 0, 0x80]


def test_waiting_for_the_end_of_a_line() -> None:
    cycles = []
    for cycle in (0, 1, 75):
        chip = Tia().at(5, cycle).write(r.WSYNC, 0)
        cycles.append(int(chip.s.cycle))
    assert cycles == [5 * LINE_CYCLES, 6 * LINE_CYCLES, 6 * LINE_CYCLES]


def test_the_end_of_a_frame() -> None:
    """VSYNC is switched off at least a line after it was switched on, or is not switched at all for 290 lines."""
    chip = Tia().at(3, 0).write(r.VSYNC, 2).at(3, 75).write(r.VSYNC, 0)
    assert not chip.s.frame_over
    assert chip.at(4, 0).write(r.VSYNC, 0).s.frame_over
    chip = Tia().at(290, 75).write(r.COLUBK, 0)
    assert not chip.s.frame_over
    assert chip.at(291, 0).write(r.COLUBK, 0).s.frame_over


def test_times_go_on_in_the_next_frame() -> None:
    chip = Tia().at(2, 40)
    chip.s.dump_cycle, chip.s.timer_set, chip.s.vsync_end = 7, 8, 9
    begin_frame(chip.s)
    assert (chip.s.cycle, chip.s.frame_start) == (0, -40 * 3)
    assert (chip.s.dump_cycle, chip.s.timer_set, chip.s.vsync_end) == (7 - 192, 8 - 192, 9 - 3 * 192)
