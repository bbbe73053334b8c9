"""A row from a stranger does no harm: on either core nothing outside of an array is read or written, and frames end."""

import os
import subprocess
import sys

import numpy as np

from fastpong.console import cartridge, controls, plain
from fastpong.console.state import STATE_BYTES, clip, records
from fastpong.console.step import Inputs
from fastpong.kernels.compile.cache import cache_folder
from tests.console.pair import NOOP, console
from tests.console.test_games import ACTIONS, Arrays

STRANGERS = int(os.environ.get("STRANGERS", 100_000))
"""Rows for the fast core; the plain one, which a step falls back to, gets a fiftieth."""


def on_the_fast_core() -> int:
    """Step rows of any bytes; a third are rows of a game in which some bytes were changed. Return how many it took."""
    rng, count = np.random.default_rng(2), 1000
    both = Arrays(count), Arrays(count, screens=False, courts=True)
    game = both[0].rows[0].copy()
    others, repeats, taken = np.full(count, NOOP, np.uint8), np.zeros(count, np.uint8), 0
    for number in range(STRANGERS // count):
        arrays = both[number % 2]
        arrays.rows[:] = rng.integers(0, 256, arrays.rows.shape, np.uint8)
        third = count // 3
        kept = rng.random((third, STATE_BYTES)) > rng.choice([0.005, 0.02, 0.2], (third, 1))
        arrays.rows[:third] = np.where(kept, game, arrays.rows[:third])
        states = records(arrays.rows)
        states["PC"][third : 2 * third] = 0xF0CE
        inputs = Inputs(rng.integers(0, ACTIONS, count).astype(np.uint8), others, repeats, 0, 0)
        begin = 0
        while begin < count:
            reached = arrays.step_in_fast_core(inputs, begin)
            taken += reached - begin
            begin = reached + 1
    return taken


def on_the_plain_core() -> None:
    """Emulate two frames from rows of any bytes, and from rows of a game in which some bytes were changed.

    The cartridge is Pong, and sometimes any bytes.
    """
    rng, rom, (game, screen) = np.random.default_rng(2), cartridge.read(), console()
    controls.boot(plain.frame, game, rom, screen)
    played = np.frombuffer(game.tobytes(), np.uint8)
    for k in range(STRANGERS // 50):
        row = rng.integers(0, 256, STATE_BYTES, np.uint8)
        if k % 4:
            row = np.where(rng.random(STATE_BYTES) < rng.choice([0.02, 0.2]), row, played)
        clip(row.view(np.int32), row.view(np.int16))
        s = records(row[None])[0]
        if k % 4 == 2:
            s.PC |= 0xF000  # in the cartridge
        noise = rng.integers(0, 256, rng.choice([2048, 4096]), np.uint8)
        for _ in range(2):
            plain.frame(s, noise if k % 8 == 5 else rom, screen)
            after = row.copy()
            clip(after.view(np.int32), after.view(np.int16))
            np.testing.assert_array_equal(after, row)
            assert s.frame_over


CODE = "from tests.console.test_strangers import *; on_the_plain_core(); print(on_the_fast_core())"


def test_rows_of_strangers() -> None:
    """Also states stay in their ranges. Numba checks indices only if asked to: both cores are compiled once more."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": f"{cache_folder('console')}-checked"}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, env=os.environ | checked, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > STRANGERS // 20
