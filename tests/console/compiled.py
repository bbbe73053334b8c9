"""What tests of the console and its page compile, beside the core that steps games.

Numba lowers what these functions call once in a process, which takes most of the time, and the process of a test file
that comes first would do it anew.
"""

import numpy as np

from fastpong.console import bus, cartridge, controls, court, cpu, fast_tia, plain, score, tia
from fastpong.console.drawing import COLOURS, as_screens
from fastpong.console.masks import PICTURE
from fastpong.console.registers import begin_frame
from tests.console.pair import NOOP, console
from tests.console.test_games import Arrays
from tests.console.test_hooks import run_to


def compile_all() -> None:
    """Call each function once, with the types that the tests have."""
    rom, (s, screen) = cartridge.read(), console()
    controls.boot(plain.frame, s, rom, screen)
    noop = np.full(1, NOOP, np.uint8)
    Arrays(1, max_frames=1).step_in_plain_core(noop, noop * 0, noop)
    cpu.instruction(s, rom, screen)
    run_to(s, screen, int(s.PC))
    picture, words = np.zeros(1, PICTURE)[0], as_screens(screen[None])[0]
    begin_frame(s)
    fast_tia.begin_picture(picture, COLOURS)
    for hook in (court.draw_court, score.draw_score, score.draw_blank_lines):
        hook(s, picture, words)
    fast_tia.catch_up(s, picture, words, 0)
    tia.catch_up(s, screen, 0)
    tia.write_tia(s, screen, 0x06, 0)
    tia.read_tia(s, screen, 0, 0)
    bus.poke(s, screen, 0x80, 0)
    bus.peek(s, rom, screen, 0x80, 0)
