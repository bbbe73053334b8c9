"""The fast core: Pong's cartridge as machine code, with hooks in place of the loops that draw. Twin: `plain`.

A frame of Pong is 6,600 instructions. Four fifths of them draw, and little of what these compute stays. To translate
them alone gains nothing, since the thousand writes to the TIA remain. So three hooks stand in for the loops that draw:
`court.draw_court`, `score.draw_score` and `score.draw_blank_lines`. Each checks what it assumes, and else steps aside.
"""

from typing import Any

from fastpong.console import court, score
from fastpong.console.court import ROM
from fastpong.console.disassemble import byte_at
from fastpong.console.fast_tia import begin_picture, is_hidden, read, write
from fastpong.console.memory import Calls
from fastpong.console.registers import begin_frame, store
from fastpong.console.translate import LONGEST_FRAME, Hook, translated
from fastpong.kernels.compile.jit import once

POWER_ON, FRAME = 0xF000, 0xF0CE
"""Where the code begins after power on, and in every frame: after VSYNC is switched off."""

_TARGETS, _ROWS, _ROW_BYTES, _PLACES, _PAGE = 0xF659, 7, 9, (6, 8), 0xF300
"""Pong's indirect jumps lead to two bytes of each row of a table, in this page."""


def indirect_targets() -> tuple[int, ...]:
    """Return the targets of JMP (A1) and JMP (A3)."""
    return tuple(_PAGE | byte_at(ROM, _TARGETS + _ROW_BYTES * row + place) for row in range(_ROWS) for place in _PLACES)


# What the translated code calls has these three arguments first.


@once
def _store(s: Any, p: Any, screen: Any, register: int, value: int) -> None:
    store(s, register, value)


@once
def _is_hidden(s: Any, p: Any, screen: Any) -> bool:
    return is_hidden(s)


CALLS = Calls(write, read, _store, _is_hidden)

HOOKS = {
    court.AT: Hook(court.draw_court, (court.EXIT,)),
    score.SCORE_AT: Hook(score.draw_score, (score.SCORE_EXIT,)),
    score.BLANK_AT: Hook(score.draw_blank_lines, (score.BLANK_EXIT,)),
}

_run = translated(ROM, (POWER_ON, FRAME), indirect_targets(), HOOKS, CALLS)


@once
def frame(
    s: Any,  # STATE
    p: Any,  # PICTURE
    screen: Any,  # SCREEN
    drawn: int,  # NOTHING, COLOURS or BITS, see `drawing`
) -> bool:
    """Emulate until the program ends the frame, and draw it as a screen, as a court or not at all.

    Returns False if it did something that is not translated: then state and screen are unfinished, and the plain core
    has to take the frame from its begin.
    """
    begin_frame(s)
    begin_picture(p, drawn)
    _run(s, p, screen)
    return bool(s.frame_over and s.cycle < LONGEST_FRAME)
