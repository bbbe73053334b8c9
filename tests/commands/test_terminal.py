"""A game in a real pseudo-terminal: what is drawn, which keys end it, and what is left behind."""

import re
import select
import signal
from pathlib import Path

import numpy as np
import pytest

from fastpong.pong import COLOURS
from fastpong.show.terminal import half_blocks
from tests.support.commands import here
from tests.support.terminal import Terminal

LEAVE = b"\x1b[?25h\x1b[?1049l"


def game(colours: str = "") -> Terminal:
    one = Terminal("play", "--terminal", "--steps", "2000", COLORTERM=colours)
    one.read(b"opponent")
    return one


@pytest.mark.parametrize("key", [b"q", b"\x1b", "ctrl-C"])
def test_a_key_ends_the_game_with_its_result(key: bytes | str) -> None:
    one = game("truecolor" if key == b"q" else "")
    if isinstance(key, bytes):
        one.press(key)
    else:
        one.process.send_signal(signal.SIGINT)
    one.read()
    assert one.process.wait(60) == 0
    drawn, left, after = one.seen.partition(LEAVE)
    assert drawn.startswith(b"\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H") and left
    assert b"value +" in drawn and {b"38;2;" in drawn, b"38;5;" in drawn} == {True, False}
    assert (b"38;2;" in drawn) == (key == b"q")
    assert after.strip().startswith(b"agent ") and b"steps" in after and b"\x1b" not in after


def test_space_pauses_and_a_new_size_begins_with_a_clean_screen() -> None:
    one = game()
    one.press(b" ")
    assert one.read(b"paused, a key goes on\x1b[K").endswith(b"\x1b[K")
    assert not select.select([one.side], [], [], 0.5)[0]  # nothing is drawn
    one.resize(40, 16)
    one.press(b" ")
    fresh = one.read(b"\x1b[2J")
    one.press(b"q")
    rest = one.read()
    assert one.process.wait(60) == 0
    rows = (fresh + rest).decode().partition("\x1b[2J")[2].partition("\x1b[K")[0].split("\n")
    assert len(rows) <= 16 and max(row.count("▀") for row in rows) <= 40


def test_into_a_pipe_goes_the_result_alone(tmp_path: Path) -> None:
    done = here("play", "--terminal", "--steps", "3", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines() == [
        "agent 0, opponent 0, after 3 steps", "the shipped agent, greedy actions, sticky 0.25, seed 0",
    ]  # fmt: skip


def test_half_blocks_show_ball_and_paddles_in_the_middle() -> None:
    picture = np.zeros((172, 160, 3), np.uint8)
    picture[:] = (144, 72, 17)
    picture[101:105, 80:82] = 236  # a ball of two by four pixels
    for columns, lines in ((160, 60), (80, 30), (40, 24), (20, 10), (200, 20)):
        rows = half_blocks(picture, columns, lines)
        assert len(rows) <= lines
        assert all(row.count("▀") == rows[0].count("▀") <= columns for row in rows)
        left = (columns - rows[0].count("▀")) // 2
        assert all(row.startswith(" " * left + "\x1b[") for row in rows)
        assert "236;236;236" in "".join(rows) and "144;72;17" in "".join(rows)
    nearest = "".join(half_blocks(picture, 80, 30, exact=False))
    assert {*re.findall(r"[34]8;5;(\d+)", nearest)} == {"94", "255"} and ";2;" not in nearest


def test_every_colour_of_pong_is_told_from_the_table_in_256() -> None:
    shown = {}
    for number, colour in COLOURS.items():
        (row,) = {*half_blocks(np.full((4, 8, 3), colour, np.uint8), 8, 4, exact=False)}
        shown[number] = row.partition("m")[0]
    assert len({*shown.values()}) == len(COLOURS)
