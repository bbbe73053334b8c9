"""The plain core against ale-py: RAM, screens, rewards and ends of games."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fastpong.console import cartridge, controls, plain
from fastpong.console.registers import CLOCKS, MOST_LINES, TOP
from fastpong.errors import EnvError, UsageError
from fastpong.pong import ACTIONS, SCREEN, WINNING
from tests.console.pair import ALE_ACTIONS, NOOP, Pair, ale, console

LOST, WON = 13, 14
"""Where in RAM the points are."""

TARGET = range(0xA1 - 0x80, 0xA5 - 0x80)
"""Where in RAM the addresses are that the program jumps to."""


def held_actions(rng: np.random.Generator, frames: int) -> Iterator[int]:
    """Any of the six actions, each held for a while."""
    while frames > 0:
        action, times = int(rng.integers(len(ACTIONS))), min(int(rng.integers(1, 20)), frames)
        yield from [action] * times
        frames -= times


@pytest.fixture(scope="module")
def pair() -> Pair:
    """Default mode and difficulty."""
    return Pair()


@pytest.fixture(scope="module")
def moments(pair: Pair) -> list[Any]:
    """Thirty states along a game."""
    saved = []
    for k, action in enumerate(held_actions(np.random.default_rng(3), 600)):
        pair.act(action)
        if k % 20 == 19:
            saved.append(pair.save())
    return saved


def test_a_game() -> None:
    """The begin of a game, and its end, which is brought near."""
    pair, rng = Pair(), np.random.default_rng(1)
    pair.check()
    for action in held_actions(rng, 1_500):
        pair.act(action)
        pair.check()
    pair.poke(LOST, WINNING - 1)
    while not pair.ale.game_over():
        pair.act(int(rng.integers(len(ACTIONS))))
        pair.check()
    assert pair.s.ram[LOST] == WINNING and pair.s.ram[WON] < WINNING


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("difficulty", [0, 1, 2, 3])
def test_modes_and_difficulties(mode: int, difficulty: int) -> None:
    pair = Pair(mode, difficulty)
    pair.check()
    assert pair.s.ram[controls.MODE_RAM] == mode
    for action in held_actions(np.random.default_rng(difficulty), 100):
        pair.act(action)
        pair.check()


def test_modes_are_those_of_ale() -> None:
    emulator = ale("pong")
    assert set(emulator.getAvailableModes()) <= set(controls.MODES)
    assert list(emulator.getAvailableDifficulties()) == list(controls.DIFFICULTIES)


def test_states_that_play_never_reaches(pair: Pair, moments: list[Any]) -> None:
    """Any bytes of RAM are changed, but not the addresses to jump to: see the next test."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        pair.restore(moments[rng.integers(len(moments))])
        for index in rng.choice(128, 4, False):
            if index not in TARGET:
                pair.poke(int(index), int(rng.integers(256)))
        for action in held_actions(rng, 10):
            if pair.ale.game_over():
                break
            pair.act(action)
            pair.check()


WILD = """
002 007 00C 015 01B 021 026 02D 052 05B 066 0B1 0D2 109 10E 182 19E 1CF 1D5 254 256 273 283 2B0 327 341 34B 34F 37B 37E
388 392 394 3CE 3EB 3F2 3F9 401 428 436 446 463 49F 4AD 4C3 4DB 4DC 536 561 58E 5AD 5D3 5D8 60F 624 643 644 68D 6AB 6DA
726 762 7B2 7D0 7D7 7DA 09B 0A5 0B3 0BB 0C6 1B4 1B6 1C7 1D9 587 599 5B1 5DE 5F3 603 610 638 681
"""
"""Addresses in the cartridge from which the program finds back to its loop, with documented instructions only.

They were found by trial; most are in the middle of an instruction. From others it soon executes undocumented
instructions, which ALE has, or what it reads at addresses where nobody answers.
"""


def wild_start(pair: Pair, saved: Any, address: int) -> int:
    """Let the program jump to some address, and compare two frames; return the lines of the longer."""
    pair.restore(saved)
    for index, byte in zip(TARGET, address.to_bytes(2, "little"), strict=False):
        pair.poke(index, byte)
    longest = 0
    for _ in range(2):
        pair.act(NOOP)
        np.testing.assert_array_equal(pair.s.ram, pair.ale.getRAM())
        lines = int(pair.s.cycle * 3 - pair.s.frame_start) // CLOCKS
        rows = lines - TOP - 1 if lines < TOP + SCREEN[0] else SCREEN[0]  # below, ALE shows an older frame than we do
        np.testing.assert_array_equal(pair.screen[: max(rows, 0)], pair.ale.getScreen()[: max(rows, 0)])
        longest = max(longest, lines)
    return longest


def test_starts_anywhere(pair: Pair, moments: list[Any]) -> None:
    """Also decimal mode is met, paddles that are read in the frame after, and frames that are too long or too short."""
    addresses = [int(address, 16) for address in WILD.split()]
    lines = [wild_start(pair, moments[address % 30], 0xF000 | address) for address in addresses]
    assert max(lines) > MOST_LINES  # without synchronisation a frame is cut


def test_breakout() -> None:
    """Another cartridge: another program, and paddles that are not swapped."""
    emulator, rom, (s, screen) = ale("breakout"), cartridge.read("breakout"), console()

    def play(action: int, reset: int = 0) -> None:
        controls.set_controls(s, action, NOOP, 0, reset, 0)
        s.resistance[0], s.resistance[1] = s.paddle[0], s.paddle[1]
        s.SWCHA = 0x7F if action == ACTIONS.index("FIRE") else 0xFF
        plain.frame(s, rom, screen)

    controls.power_on(s, rom)
    for _ in range(60):
        play(NOOP)
    while (s.ram != emulator.getRAM()).any():
        play(NOOP, reset=1)
    for k in range(300):
        action = k // 5 % 4  # right, left, nothing, fire
        emulator.act(ALE_ACTIONS[action])
        play(action)
        np.testing.assert_array_equal(s.ram, emulator.getRAM())
        np.testing.assert_array_equal(screen, emulator.getScreen())
    assert emulator.lives() < 5


@pytest.mark.parametrize("name", ["boxing", "freeway", "space_invaders", "video_pinball"])
def test_cartridges_that_nobody_plays(name: str) -> None:
    """Joysticks instead of paddles, which are not touched; the game begins, and goes on by itself."""
    emulator, rom, (s, screen) = ale(name), cartridge.read(name), console()

    def play(reset: int = 0) -> None:
        controls.set_controls(s, NOOP, NOOP, 0, reset, 0)
        s.resistance[:] = 0
        plain.frame(s, rom, screen)

    controls.power_on(s, rom)
    for _ in range(60):
        play()
    while (s.ram != emulator.getRAM()).any():
        play(reset=1)
    for _ in range(60):
        emulator.act(ALE_ACTIONS[NOOP])
        play()
        np.testing.assert_array_equal(s.ram, emulator.getRAM())
        np.testing.assert_array_equal(screen, emulator.getScreen())


def test_a_program_that_hangs() -> None:
    rom, (s, screen) = np.full(4096, 0xEA, np.uint8), console()
    rom[0xFFC:0xFFE], rom[:3] = (0x00, 0xF0), (0x4C, 0x00, 0xF0)  # begin at F000: JMP F000
    controls.power_on(s, rom)
    plain.frame(s, rom, screen)
    assert s.frame_over and plain.FRAME_CYCLES <= s.cycle < plain.FRAME_CYCLES + 10 and s.PC == 0xF000


def test_the_cartridge_is_known() -> None:
    rom = cartridge.read()
    assert cartridge.is_known(rom)
    rom[100] ^= 1
    assert not cartridge.is_known(rom)


def test_cartridges_that_the_console_does_not_play() -> None:
    for name in ("no_such_game", "hero"):
        with pytest.raises(EnvError, match=name):
            cartridge.read(name)


def test_the_last_mode() -> None:
    """SELECT leads to each mode of the cartridge, also to those that ALE does not know."""
    rom, (s, screen) = cartridge.read(), console()
    controls.boot(plain.frame, s, rom, screen, mode=controls.MODES[-1], difficulty=3)
    assert (s.ram[controls.MODE_RAM], s.SWCHB & 0xC0, s.frames) == (49, 0xC0, 0)


def test_modes_that_pong_does_not_have() -> None:
    rom, (s, screen) = cartridge.read(), console()
    for mode, difficulty in ((50, 0), (-1, 0), (0, 4)):
        with pytest.raises(UsageError, match="modes"):
            controls.boot(plain.frame, s, rom, screen, mode, difficulty)
