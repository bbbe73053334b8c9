"""The plain core: a frame, instruction by instruction and pixel by pixel.

It is the twin of the fast core, and the page to read first: from here to the processor (`cpu`, `alu`), the bus
(`bus`), and the two chips on it (`tia` with `registers`, `riot`).
"""

from typing import Any

from fastpong.arrays import U8
from fastpong.console.cpu import instruction
from fastpong.console.registers import begin_frame
from fastpong.kernels.compile.jit import once

FRAME_CYCLES = 100_000
"""Cycles after which a frame is cut: those of five. A program may have lost its way and never touch the TIA again.

ALE cuts such a frame after 25,000 instructions, which no game reaches in play.
"""


@once
def frame(
    s: Any,  # STATE
    rom: U8,  # (2048 or 4096,)
    screen: U8,  # (210, 160) in and out: indices of ALE's NTSC palette
) -> None:
    """Emulate until the program ends the frame: it switches VSYNC off.

    Lines that it does not reach keep the pixels of the frame before. In ALE, which draws into two screens in turn, they
    have those of the frame before that.
    """
    begin_frame(s)
    while not s.frame_over:
        if s.cycle < FRAME_CYCLES:
            instruction(s, rom, screen)
        else:
            s.frame_over = 1
