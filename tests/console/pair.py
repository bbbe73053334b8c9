"""The plain core and ale-py, playing the same game."""

from collections.abc import Callable
from typing import Any

import ale_py
import numpy as np

from fastpong.arrays import U8
from fastpong.console import cartridge, controls, plain
from fastpong.console.state import STATE_BYTES, records
from fastpong.pong import ACTIONS, SCREEN, WINNING

ALE_ACTIONS = tuple(getattr(ale_py.Action, name) for name in ACTIONS)
NOOP = ACTIONS.index("NOOP")


def ale(name: str, mode: int = 0, difficulty: int = 0) -> Any:
    """Return ale-py at the begin of a game; every frame is a step, and no action is sticky."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ale_py.ALEInterface()
    emulator.setInt("random_seed", 0)
    emulator.setInt("frame_skip", 1)
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("max_num_frames_per_episode", 108_000)
    path = ale_py.roms.get_rom_path(name)
    assert path is not None
    emulator.loadROM(path)
    emulator.setMode(mode)
    emulator.setDifficulty(difficulty)
    emulator.reset_game()
    return emulator


def console() -> tuple[Any, U8]:
    """Return a state, a record in memory of its own, and a screen."""
    return records(np.zeros((1, STATE_BYTES), np.uint8))[0], np.zeros(SCREEN, np.uint8)


class Pair:
    """ALE and the plain core (or another one) at the begin of the same game of Pong."""

    def __init__(self, mode: int = 0, difficulty: int = 0, frame: Callable[[Any, U8, U8], Any] = plain.frame):
        self.ale, self.difficulty, self.frame = ale("pong", mode, difficulty), difficulty, frame
        self.rom, (self.s, self.screen) = cartridge.read(), console()
        controls.boot(frame, self.s, self.rom, self.screen, mode, difficulty)
        self.lead = 0  # points won minus points lost

    def act(self, action: int) -> None:
        """Play a frame in both; rewards and the end of the game have to be equal."""
        reward = self.ale.act(ALE_ACTIONS[action])
        self.set_controls(action)
        self.frame(self.s, self.rom, self.screen)
        lead = int(self.s.ram[14]) - int(self.s.ram[13])
        assert reward == lead - self.lead
        self.lead = lead
        assert self.ale.game_over() == (WINNING in (self.s.ram[13], self.s.ram[14]))

    def set_controls(self, action: int) -> None:
        """Set what player A does in the next frame of the console."""
        controls.set_controls(self.s, action, NOOP, 0, 0, self.difficulty)

    def save(self) -> Any:
        """Return the state of both, for `restore`."""
        return self.ale.cloneState(include_rng=False), self.s.tobytes(), self.screen.copy(), self.lead

    def restore(self, saved: Any) -> None:
        """Go back to a saved state."""
        self.ale.restoreState(saved[0])
        self.s = records(np.frombuffer(bytearray(saved[1]), np.uint8)[None])[0]
        self.screen[:], self.lead = saved[2:]

    def poke(self, index: int, value: int) -> None:
        """Change a byte of RAM in both."""
        self.ale.setRAM(index, value)
        self.s.ram[index] = value

    def check(self) -> None:
        """RAM and screen have to be equal."""
        np.testing.assert_array_equal(self.s.ram, self.ale.getRAM())
        np.testing.assert_array_equal(self.screen, self.ale.getScreen())
