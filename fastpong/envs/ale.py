"""The engine that is the reference: ALE, the Arcade Learning Environment, with an emulator for each env.

Screens are palette indices, which the emulator writes straight into the caller's array: 0.4 µs instead of 17 µs for
RGB. To create an emulator takes 86 ms, in which ALE fills a table of colours.
"""

from typing import ClassVar

import ale_py
import numpy as np
from ale_py import Action, ALEInterface, ALEState, roms

from fastpong import pong
from fastpong.arrays import U8, Arrays
from fastpong.courts import draw_court
from fastpong.envs.engine import IMAGES, STATE_BYTES
from fastpong.errors import EnvError
from fastpong.pong import MAX_FRAMES, SCREEN, STAY

ACTIONS: tuple[Action, ...] = tuple(getattr(Action, name) for name in pong.ACTIONS)
"""What actions mean to the emulator, by name, so that neither the minimal nor the full action set can shift them."""

_HELD = -1  # byte of a row: the action that the next step may repeat, an index; ALE's own state, at the front, lacks it
_CHIPS = ("System", "M6502Low", "M6532", "TIA", "TIASound", "Cartridge2K")
"""Names in the bytes of a state, each after its length in four bytes."""


class Ale:
    """See `Engine`. Games all begin in one state, which is kept: to reset an emulator takes 72 frames, 4 ms.

    Sticky actions are the caller's and not the emulator's, frame by frame with the same distribution: the noise then
    depends on (run seed, env, step) alone, and what may be repeated is a known part of the state. Single frames cost no
    more than ALE's own frame skip. Pong itself has no randomness.
    """

    name: ClassVar[str] = "ale"
    state_bytes: ClassVar[int] = STATE_BYTES["ale"]

    def __init__(self, arrays: Arrays, frame_skip: int):
        self._frame_skip = frame_skip
        self._rows, self._rewards, self._ended = list(arrays["rows"]), arrays["rewards"], arrays["ended"]
        screens, self._courts, self._final, self._earlier = (
            list(arrays[name]) if name in arrays else None for name in IMAGES
        )
        self._screens = screens or list(np.zeros((len(self._rows), *SCREEN), np.uint8))
        self._emulators = [new_emulator() for _ in self._rows]
        self._emulators[0].reset_game()
        self._first_screen = self._emulators[0].getScreen()  # it draws none before its next step
        # ALE's own noise is never drawn from, and to copy its generator takes twice as long as the rest.
        self._first_state = self._emulators[0].cloneState(include_rng=False)
        self._first_row = np.zeros(self.state_bytes, np.uint8)
        self._first_row[_HELD] = ACTIONS.index(Action.NOOP)
        self._size = len(self._first_state.serialize())
        self._write(self._first_state, self._first_row)
        self._constant = _constant_parts(self._first_row[: self._size].tobytes())

    def reset(self, envs: range) -> None:
        """See `Engine`."""
        for i in envs:
            self._emulators[i].restoreState(self._first_state)
            self._rows[i][:], self._screens[i][:] = self._first_row, self._first_screen
            self._draw_court(i)
            if self._earlier:
                self._earlier[i].fill(0)

    def step(self, envs: range, actions: U8, repeats: U8) -> None:
        """See `Engine`."""
        last_frame = self._frame_skip - 1
        for i, choice, repeat in zip(envs, actions.tolist(), repeats.tolist(), strict=True):
            self._rewards[i] = self._ended[i] = 0
            if choice == STAY:
                continue
            emulator, row = self._emulators[i], self._rows[i]
            action, held, reward = ACTIONS[choice], ACTIONS[row[_HELD]], 0
            for frame in range(self._frame_skip):
                if self._earlier and frame == last_frame:
                    if frame:
                        emulator.getScreen(self._earlier[i])
                    else:  # a restored emulator has not drawn yet
                        self._earlier[i][:] = self._screens[i]
                reward += emulator.act(held if frame < repeat else action)
            self._rewards[i] = reward
            if emulator.game_over():
                if self._final:
                    emulator.getScreen(self._final[i])
                self.reset(range(i, i + 1))
                self._ended[i] = 1
                continue
            emulator.getScreen(self._screens[i])
            self._draw_court(i)
            self._write(emulator.cloneState(include_rng=False), row)
            if repeat < self._frame_skip:
                row[_HELD] = choice

    def ram(self, env: int) -> U8:
        """See `Engine`."""
        return self._emulators[env].getRAM()

    def restore(self) -> None:
        """See `Engine`."""
        for emulator, row in zip(self._emulators, self._rows, strict=True):
            same = all((row[part] == self._first_row[part]).all() for part in self._constant)
            try:
                if not same or row[_HELD] >= len(ACTIONS):
                    raise ValueError
                emulator.restoreState(ALEState(row[: self._size].tobytes()))
            except Exception:  # whatever ALE makes of a stranger's bytes
                raise EnvError("ALE refuses the saved state of an env") from None

    def _draw_court(self, i: int) -> None:
        """Bring an env's court, if it is wanted, to its screen."""
        if self._courts:
            draw_court(self._screens[i], self._courts[i])

    def _write(self, state: ALEState, row: U8) -> None:
        """Write a state into a row; every state of one version of ALE has the same size, and NumPy insists on it."""
        row[: self._size] = np.frombuffer(state.serialize(), np.uint8)


def new_emulator() -> ALEInterface:
    """Return a Pong that steps single frames without noise of its own; it still has to be reset."""
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ALEInterface()
    emulator.setInt("random_seed", 0)  # unused without sticky actions
    emulator.setInt("frame_skip", 1)
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("max_num_frames_per_episode", MAX_FRAMES)
    rom = roms.get_rom_path("pong")
    if rom is None:
        raise EnvError("this ale-py has no Pong: install it again")
    emulator.loadROM(rom)
    return emulator


def _constant_parts(state: bytes) -> list[slice]:
    """Return where all states have the same bytes: lengths, names, and ALE's own noise, which is never drawn from.

    ALE believes them: a wrong length takes gigabytes, and a wrong place in the noise ends the process.
    """
    texts = [len(name).to_bytes(4, "little") + name.encode() for name in _CHIPS]
    names = [slice(state.index(text), state.index(text) + len(text)) for text in texts]
    game = slice(names[0].start - 40, names[0].start)  # length of what follows, 32, and a hash of the game
    noise = slice(names[0].stop + 4, names[1].start)  # after the number of cycles
    return [game, noise, *names]
