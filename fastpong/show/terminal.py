"""A game in the terminal: the court of half blocks, and the keys that pause and end it."""

import contextlib
import functools
import itertools
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fastpong.arrays import U8

_PAUSE, _ENDS = " ", ("q", "Q", "\x1b")

_COURT = slice(28, 200)
"""Rows of a picture: the court between its walls, without the score above."""

_PIXEL = (4 / 160) / (3 / 210)
"""Width of a picture's pixel over its height, on a television; those of half blocks are square."""

_COLOURS = [*itertools.product((0, 95, 135, 175, 215, 255), repeat=3), *((grey,) * 3 for grey in range(8, 248, 10))]
"""Red, green and blue of xterm's 256 colours but for the first 16, which every terminal has its own of."""


def show(pictures: Iterator[U8], status: Callable[[], Sequence[str]]) -> None:
    """Draw the court of pictures uint8 (210, 160, 3), and a line below, until they, q, Esc or ctrl-C end it.

    `status` tells the parts of that line; as many as fit are shown, the first ones first.
    """
    sys.stdout.write("\x1b[?1049h\x1b[?25l")  # the alternate screen, no cursor
    before, exact = None, os.environ.get("COLORTERM") in ("truecolor", "24bit")
    try:
        with _keys() as pressed, contextlib.suppress(KeyboardInterrupt):
            for picture in pictures:
                size = shutil.get_terminal_size()
                clear = "" if size == before else "\x1b[2J"
                before = size
                court = half_blocks(picture[_COURT], size.columns, size.lines - 1, exact)
                above = "\n" * ((size.lines - 1 - len(court)) // 2)
                line = _fitting([*status(), "space: pause", "q: end"], size.columns - 1)
                sys.stdout.write("\n".join([f"{clear}\x1b[H{above}{court[0]}", *court[1:], f"{line}\x1b[K"]))
                sys.stdout.flush()
                if _asks_to_end(pressed):
                    break
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


def _fitting(parts: Sequence[str], columns: int) -> str:
    """Join as many parts as fit into so many columns, in their middle."""
    lines = [line for line in itertools.accumulate(parts, "{}   {}".format) if len(line) <= columns]
    return (lines[-1] if lines else parts[0][:columns]).center(columns).rstrip()


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Give a function that returns what was pressed since its last call; nothing where stdin is no terminal."""
    if not sys.stdin.isatty():
        yield lambda: ""
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield lambda: os.read(number, 64).decode(errors="ignore") if select.select([number], [], [], 0)[0] else ""
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _asks_to_end(pressed: Callable[[], str]) -> bool:
    """Look at the keys; after a pause, wait for the next one."""
    keys = pressed()
    if _PAUSE in keys:
        sys.stdout.write("\r paused, a key goes on\x1b[K")
        sys.stdout.flush()
        keys = ""
        while not keys:
            time.sleep(0.05)
            keys = pressed()
    return keys.endswith(_ENDS)


def half_blocks(picture: U8, columns: int, lines: int, exact: bool = True) -> list[str]:
    """Draw a picture uint8 (height, width, 3) of a screen with the character ▀: two pixels, one above the other.

    It fits into so many columns and lines of characters, stands in the middle of these columns, and keeps the
    proportions of a television's screen. Its colours are `exact`, of 24 bits, or the nearest of 256.
    """
    height, width, _ = picture.shape
    shape = width * _PIXEL / height
    across = max(8, min(columns, width, int(2 * lines * shape)))
    down = max(4, min(lines, round(across / shape / 2)))
    rows_at = np.linspace(0, height, 2 * down, endpoint=False).astype(int)
    columns_at = np.linspace(0, width, across, endpoint=False).astype(int)
    # The brightest pixel of each cell: an average would dim the ball to nothing.
    cells = np.maximum.reduceat(np.maximum.reduceat(picture, rows_at, axis=0), columns_at, axis=1)
    rows = []
    for upper, lower in zip(cells[0::2].tolist(), cells[1::2].tolist(), strict=True):
        text, before = [" " * ((columns - across) // 2)], None
        for two in zip(upper, lower, strict=True):
            if two != before:
                text.append(_sequence(*map(tuple, two), exact))
                before = two
            text.append("▀")
        rows.append(f"{''.join(text)}\x1b[0m")
    return rows


@functools.lru_cache(1024)
def _sequence(upper: Sequence[int], lower: Sequence[int], exact: bool) -> str:
    """Return the control sequence for the two colours, red, green and blue each, of a character ▀."""
    if exact:
        return "\x1b[38;2;{};{};{};48;2;{};{};{}m".format(*upper, *lower)
    return f"\x1b[38;5;{_nearest(upper)};48;5;{_nearest(lower)}m"


def _nearest(colour: Sequence[int]) -> int:
    """Return the number of the nearest of `_COLOURS`."""
    far = [sum((ours - theirs) ** 2 for ours, theirs in zip(colour, other, strict=True)) for other in _COLOURS]
    return 16 + far.index(min(far))
