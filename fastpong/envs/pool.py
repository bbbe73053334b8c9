"""The emulators of one process: how one is made, and how envs share the first until each has its own."""

from typing import NamedTuple

import ale_py
from ale_py import ALEInterface, ALEState, roms

from fastpong.arrays import U8

MAX_FRAMES = 108_000
"""Frames after which a game is cut off (half an hour), as in ``ALE/Pong-v5``."""

SHARED_STEPS = 256
"""Steps that envs take on one emulator before the first of them gets its own: a short run ends before."""

_CHIPS = ("System", "M6502Low", "M6532", "TIA", "TIASound", "Cartridge2K")
"""Names in the bytes of a state, each after its length in four bytes."""


class FirstState(NamedTuple):
    """How every game begins."""

    state: ALEState
    bytes: bytes  # of the state
    screen: U8  # (210, 160) palette indices: the emulator draws none before its next step


class EmulatorPool:
    """The emulators of `count` envs: at first one, on which the envs take turns; after some steps each gets its own.

    Creating an emulator takes 86 ms, in which ALE fills a colour table, and exchanging states 0.05 ms.
    """

    def __init__(self, count: int):
        self._shared = new_emulator()
        self._shared.reset_game()
        self.own: list[ALEInterface | None] = [None] * count if count > 1 else [self._shared]
        self._states: list[ALEState | None] = [None] * count  # of the envs that take turns
        self._steps = 0
        # ALE's own noise is never drawn from, and to copy its generator takes twice as long as the rest.
        state = self._shared.cloneState(include_rng=False)
        self.first = FirstState(state, state.serialize(), self._shared.getScreen())

    def swap_in(self, i: int) -> ALEInterface:
        """Put the shared emulator to the state of env `i`."""
        self._shared.restoreState(self._states[i])  # type: ignore[arg-type]
        return self._shared

    def swap_out(self, i: int) -> None:
        """Keep the state of env `i`, for which the shared emulator was stepped."""
        self._states[i] = self._shared.cloneState(include_rng=False)

    def save(self, i: int) -> bytes:
        """State of env `i`'s emulator."""
        emulator = self.own[i]
        state = self._states[i] if emulator is None else emulator.cloneState(include_rng=False)
        assert state is not None
        return state.serialize()

    def read(self, data: bytes) -> ALEState:
        """Return the state in the bytes of `save`; raises an exception, of ALE's or ours, for other bytes."""
        first = self.first.bytes
        if len(data) != len(first) or any(data[part] != first[part] for part in _constant_parts(first)):
            raise ValueError("not a state of this emulator")
        return ALEState(data)

    def restore(self, i: int, state: ALEState) -> None:
        """Put env `i` to a state."""
        emulator = self.own[i]
        if emulator is None:
            self._states[i] = state
        else:
            emulator.restoreState(state)

    def grow(self) -> None:
        """Count a step of all envs; after `SHARED_STEPS` of them, give one more env an emulator of its own."""
        self._steps += 1
        if self._steps <= SHARED_STEPS:
            return
        for i, state in enumerate(self._states):
            if state is not None:
                self.own[i] = emulator = new_emulator()
                emulator.restoreState(state)
                self._states[i] = None
                break


def new_emulator() -> ALEInterface:
    """Return a Pong that steps single frames without noise of its own; it still has to be reset."""
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ALEInterface()
    emulator.setInt("random_seed", 0)  # unused without sticky actions
    emulator.setInt("frame_skip", 1)
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("max_num_frames_per_episode", MAX_FRAMES)
    rom = roms.get_rom_path("pong")
    assert rom is not None  # it is part of the ale-py package
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
