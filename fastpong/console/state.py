"""The state of a console: one row of bytes. To save, restore, copy or send it is to copy the row.

`FIELDS` says what is in it; `STATE` is the row as a structured dtype of NumPy, which Numba reads as a record, as in
``s.GRP0``. Registers of the TIA have the names of the *Stella Programmer's Guide* (Wright, 1979), those of the
processor the names of MOS Technology's manual. All numbers but the RAM are signed, so that arithmetic with them is in
int64.

A row may come from a stranger. `clip` brings every number into its range, and code that gets such a row reads and
writes nothing outside of it.
"""

from typing import Any, NamedTuple

import numpy as np

from fastpong.arrays import I16, I32, U8
from fastpong.kernels.compile.jit import kernel, once

NEVER = 1 << 30
"""A clock, or a cycle, that no frame reaches."""

PLAYER_0, PLAYER_1, MISSILE_0, MISSILE_1, BALL, PLAYFIELD = range(6)
"""The objects of the TIA, which are also the indices of ``position`` and ``HM``; the playfield has none."""

PADDLE_LOW, PADDLE_HIGH = 27_450, 790_196
"""Ohms of a paddle at its two ends, as ALE turns it."""

RAM_BYTES = 128


class Field(NamedTuple):
    """Some numbers of the state: their name, how many, the range of their values, and what they are."""

    name: str
    size: int
    low: int
    high: int
    meaning: str


_FOUR_BYTES = (
    Field("cycle", 1, 0, 1 << 20, "processor cycles since the frame began; 3 clocks each"),
    Field("frame_start", 1, -227, 0, "clock at which the frame's first line began; a line has 228"),
    Field("beam", 1, -228, 1 << 22, "clock up to which the picture is drawn"),
    Field("vsync_end", 1, -NEVER, NEVER, "clock from which on switching VSYNC off ends the frame"),
    Field("PF", 1, 0, 0xFFFFF, "playfield, from bit 0 on: the upper four bits of PF0, then PF1, then PF2"),
    Field("collisions", 1, 0, 0xFFFF, "bits 2 r + 1 and 2 r are bits 6 and 7 of collision latch r, CXM0P … CXPPMM"),
    Field("dump_cycle", 1, -NEVER, NEVER, "cycle at which the capacitors of the paddles began to charge"),
    Field("timer_set", 1, -NEVER, NEVER, "cycle at which the timer was set"),
    Field("timer_read", 1, -NEVER, NEVER, "cycle at which the timer was first read after it had run out"),
    Field("resistance", 2, 0, PADDLE_HIGH, "ohms at INPT0 and INPT1; 0: nothing is plugged in"),
    Field("paddle", 2, PADDLE_LOW, PADDLE_HIGH, "ohms of the paddles of player A and player B"),
    Field("frames", 1, 0, NEVER, "frames of this game"),
    Field("PC", 1, 0, 0xFFFF, "program counter; the 6507 has 13 address lines, but all 16 bits go to the stack"),
)
_TWO_BYTES = (
    Field("A", 1, 0, 255, "accumulator"),
    Field("X", 1, 0, 255, "index register"),
    Field("Y", 1, 0, 255, "index register"),
    Field("S", 1, 0, 255, "stack pointer"),
    Field("N", 1, 0, 1, "flag: negative"),
    Field("V", 1, 0, 1, "flag: overflow"),
    Field("D", 1, 0, 1, "flag: decimal mode"),
    Field("I", 1, 0, 1, "flag: no interrupts; the 6507 has none anyhow"),
    Field("Z", 1, 0, 1, "flag: zero"),
    Field("C", 1, 0, 1, "flag: carry"),
    Field("frame_over", 1, 0, 1, "whether the frame has ended"),
    Field("VSYNC", 1, 0, 255, "bit 1: vertical synchronisation"),
    Field("VBLANK", 1, 0, 255, "bit 1: the picture is black; bit 7: the capacitors of the paddles are emptied"),
    Field("NUSIZ0", 1, 0, 255, "bits 0 … 2: copies and width of player 0; 4, 5: width of missile 0"),
    Field("NUSIZ1", 1, 0, 255, "the same of player 1 and missile 1"),
    Field("COLUP0", 1, 0, 254, "colour of player 0 and missile 0"),
    Field("COLUP1", 1, 0, 254, "colour of player 1 and missile 1"),
    Field("COLUPF", 1, 0, 254, "colour of playfield and ball"),
    Field("COLUBK", 1, 0, 254, "colour of the background"),
    Field(
        "CTRLPF", 1, 0, 255, "bit 0: reflect the playfield; 1: score; 2: playfield in front; 4, 5: width of the ball"
    ),
    Field("REFP0", 1, 0, 8, "not 0: player 0 is reflected"),
    Field("REFP1", 1, 0, 8, "not 0: player 1 is reflected"),
    Field("GRP0", 1, 0, 255, "graphics of player 0, bit 7 leftmost"),
    Field("GRP1", 1, 0, 255, "graphics of player 1"),
    Field("ENAM0", 1, 0, 2, "not 0: missile 0 is on"),
    Field("ENAM1", 1, 0, 2, "not 0: missile 1 is on"),
    Field("ENABL", 1, 0, 2, "not 0: the ball is on"),
    Field("VDELP0", 1, 0, 1, "not 0: player 0 shows `old_GRP0`"),
    Field("VDELP1", 1, 0, 1, "not 0: player 1 shows `old_GRP1`"),
    Field("VDELBL", 1, 0, 1, "not 0: the ball shows `old_ENABL`"),
    Field("RESMP0", 1, 0, 2, "not 0: missile 0 is hidden, and locked to player 0"),
    Field("RESMP1", 1, 0, 2, "not 0: missile 1 is hidden, and locked to player 1"),
    Field("old_GRP0", 1, 0, 255, "GRP0 at the last write to GRP1"),
    Field("old_GRP1", 1, 0, 255, "GRP1 at the last write to GRP0"),
    Field("old_ENABL", 1, 0, 2, "ENABL at the last write to GRP1"),
    Field("HM", 5, 0, 15, "motion of each object at HMOVE: the upper four bits of HMP0, HMP1, HMM0, HMM1, HMBL"),
    Field("position", 5, 0, 159, "x of each object"),
    Field("skip_copy", 2, 0, 1, "whether a player's first copy is left out in this line, after RESP0, RESP1"),
    Field("mirrored", 1, 0, 1, "whether the right half of the playfield is reflected in this line"),
    Field("comb", 1, 0, 1, "whether the next shown line begins with eight black pixels, after HMOVE"),
    Field("dumped", 1, 0, 1, "whether the capacitors of the paddles are kept empty"),
    Field("timer", 1, 0, 255, "value that the timer was set to"),
    Field("timer_shift", 1, 0, 10, "the timer counts down once in 2 to this power of cycles: 0, 3, 6 or 10"),
    Field("timer_ran_out", 1, 0, 1, "whether the timer was read after it had run out"),
    Field("SWCHA", 1, 0, 255, "0: pressed; bit 7: button of the paddle at INPT0, bit 6: of that at INPT1"),
    Field("SWCHB", 1, 0, 255, "bits 0, 1: RESET, SELECT, 0: pressed; 3: colour; 6, 7: difficulty left, right"),
    Field("held", 1, 0, 5, "the action that a sticky action repeats, an index into `fastpong.pong.ACTIONS`"),
)
FIELDS = (*_FOUR_BYTES, *_TWO_BYTES)
"""What follows 128 bytes of RAM in a row: the first ones int32, the others int16."""


def _dtype() -> Any:
    fields: list[Any] = [("ram", np.uint8, RAM_BYTES)]
    for kind, some in ((np.int32, _FOUR_BYTES), (np.int16, _TWO_BYTES)):
        fields += [(f.name, kind, f.size) if f.size > 1 else (f.name, kind) for f in some]
    fields += [("unused", np.uint8, -np.dtype(fields).itemsize % 64)]  # rows begin at cache lines
    return np.dtype((np.record, fields))


STATE = _dtype()
STATE_BYTES: int = STATE.itemsize


def _bounds(some: tuple[Field, ...], kind: Any) -> tuple[Any, Any]:
    numbers = [f for f in some for _ in range(f.size)]
    return np.array([f.low for f in numbers], kind), np.array([f.high for f in numbers], kind)


_LOW_32, _HIGH_32 = _bounds(_FOUR_BYTES, np.int32)
_LOW_16, _HIGH_16 = _bounds(_TWO_BYTES, np.int16)
_HALVES_AT = (RAM_BYTES + 4 * len(_LOW_32)) // 2


@kernel
def clip(
    words: I32,  # (STATE_BYTES / 4,) a row
    halves: I16,  # (STATE_BYTES / 2,) the same row
) -> None:
    """Bring every number of a row into its range."""
    for k in range(len(_LOW_32)):
        words[RAM_BYTES // 4 + k] = min(max(words[RAM_BYTES // 4 + k], _LOW_32[k]), _HIGH_32[k])
    for k in range(len(_LOW_16)):
        halves[_HALVES_AT + k] = min(max(halves[_HALVES_AT + k], _LOW_16[k]), _HIGH_16[k])


@once
def byte(
    s: Any,  # STATE
    index: int,  # 0 … 127
) -> int:
    """Return a byte of RAM as an int64. Of two uint8 Numba makes a uint64, and of that and an int64 a float64."""
    return int(np.int64(s.ram[index]))


@once
def word(
    s: Any,  # STATE
    index: int,  # 0 … 126
) -> int:
    """Return the address that two bytes of RAM are, the lower one first."""
    return byte(s, index) | byte(s, index + 1) << 8


def records(rows: U8) -> Any:
    """Return rows of states, uint8 (n, STATE_BYTES) and contiguous, as records of dtype `STATE`, (n,)."""
    return rows.view(STATE)[:, 0]
