"""A game in the terminal: pictures of half blocks, and the keys that pause and end it."""

import contextlib
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fastpong.arrays import U8

_PAUSE, _ENDS = " ", ("q", "Q", "\x1b")


def show(pictures: Iterator[U8], status: Callable[[], str]) -> None:
    """Draw pictures uint8 (210, 160, 3) over one another with a line below, until they, q, Esc or ctrl-C end it."""
    sys.stdout.write("\x1b[?1049h\x1b[?25l")  # the alternate screen, no cursor
    before = None
    try:
        with _keys() as pressed, contextlib.suppress(KeyboardInterrupt):
            for picture in pictures:
                size = shutil.get_terminal_size()
                clear = "" if size == before else "\x1b[2J"
                before = size
                text = half_blocks(picture, size.columns, size.lines - 1)
                line = f" {status()}   space: pause   q: end"[: size.columns - 1]
                sys.stdout.write(f"{clear}\x1b[H{text}\n{line}\x1b[K")
                sys.stdout.flush()
                if _asks_to_end(pressed):
                    break
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


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


def half_blocks(picture: U8, columns: int, lines: int) -> str:
    """Draw a picture uint8 (210, 160, 3) with the character ▀: two pixels, one above the other.

    It fits into so many columns and lines of characters, and keeps the proportions of a television's screen (4:3). The
    text has 24-bit colour sequences, and no line break after the last line.
    """
    height, width, _ = picture.shape
    columns = max(8, min(columns, width, int(2 * lines * 4 / 3)))
    lines = max(4, min(lines, round(columns * 3 / 4 / 2)))
    rows_at = np.linspace(0, height, 2 * lines, endpoint=False).astype(int)
    columns_at = np.linspace(0, width, columns, endpoint=False).astype(int)
    # The brightest pixel of each cell: an average would dim the ball to nothing.
    cells = np.maximum.reduceat(np.maximum.reduceat(picture, rows_at, axis=0), columns_at, axis=1)
    text = []
    for upper, lower in zip(cells[0::2], cells[1::2], strict=True):
        before: tuple[Any, ...] = ()
        for a, b in zip(upper.tolist(), lower.tolist(), strict=True):
            if (a, b) != before:
                text.append(f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m")
                before = (a, b)
            text.append("▀")
        text.append("\x1b[0m\n")
    return "".join(text)[:-1]
