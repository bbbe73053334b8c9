"""The console's core in JavaScript against ale-py, and against the plain core that it is made from."""

import json
import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong.arrays import U8
from fastpong.console import cartridge, controls, plain
from fastpong.console.state import STATE
from fastpong.pong import ACTIONS
from tests.console.pair import ALE_ACTIONS, NOOP, ale, console
from tests.support.v8 import V8, v8

FRAMES = int(os.environ.get("FRAMES", 300))
"""Of each comparison: FRAMES=3000 takes a minute."""

COMPUTERS_PADDLE = 21
"""Where in RAM the left paddle's row is while the computer plays it."""

SCRIPT = Path(__file__).parents[2] / "docs" / "make_core.py"


def test_it_is_up_to_date() -> None:
    made = runpy.run_path(str(SCRIPT))
    assert made["PATH"].read_text() == made["text"]()


class Game:
    """A game in V8: its RAM and its screen are arrays in V8's memory."""

    def __init__(self, v8: V8, game: int):
        rom = cartridge.read().tolist()
        v8.eval(f"const rom = Uint8Array.from({rom}), screen = new Uint8Array(33600), s = boot(rom, screen, {game})")
        self.v8, self.ram, self.screen = v8, v8.bytes_of("s.ram"), v8.bytes_of("screen").reshape(210, 160)

    def play(self, action: int, other: int = NOOP) -> None:
        """Play a frame."""
        self.v8.eval(f"core.set_controls(s, {action}, {other}, 0, 0, 0); core.frame(s, rom, screen)")

    def check(self, ram: U8, screen: U8) -> None:
        """RAM and screen have to be those of another console."""
        np.testing.assert_array_equal(self.ram, ram)
        np.testing.assert_array_equal(self.screen, screen)

    def check_state(self, s: Any) -> None:
        """Every number of the state has to be that of the plain core."""
        fields = json.loads(self.v8.eval("JSON.stringify(s, (_, value) => value.length ? [...value] : value)"))
        assert fields == {name: s[name].tolist() for name in STATE.names or () if name != "unused"}


@pytest.fixture
def context() -> Iterator[V8]:
    with v8("core.js", "net.js", "versus.js") as opened:
        yield opened


def test_it_plays_as_ale_does(context: V8) -> None:
    """Random actions; from a quarter on the left paddle is written into RAM, in both."""
    rng, emulator, game = np.random.default_rng(5), ale("pong"), Game(context, 0)
    game.check(emulator.getRAM(), emulator.getScreen())
    for number in range(FRAMES):
        if number % 7 == 0:
            action, row = int(rng.integers(len(ACTIONS))), int(rng.integers(40, 200))
        if number > FRAMES / 4:
            emulator.setRAM(COMPUTERS_PADDLE, row)
            game.ram[COMPUTERS_PADDLE] = row
        emulator.act(ALE_ACTIONS[action])
        game.play(action)
        game.check(emulator.getRAM(), emulator.getScreen())


def test_it_plays_as_the_plain_core_does(context: V8) -> None:
    """The cartridge's game for two, which ALE does not have; and now and then all numbers of the state."""
    rng, rom, (s, screen), game = np.random.default_rng(6), cartridge.read(), console(), Game(context, 2)
    controls.boot(plain.frame, s, rom, screen, mode=2)
    for number in range(FRAMES):
        game.check(s.ram, screen)
        if number % 7 == 0:
            game.check_state(s)
            action, other = (int(k) for k in rng.integers(len(ACTIONS), size=2))
        controls.set_controls(s, action, other, 0, 0, 0)
        plain.frame(s, rom, screen)
        game.play(action, other)
    assert s.ram[controls.MODE_RAM] == 2 and max(s.ram[13:15]) > 0
