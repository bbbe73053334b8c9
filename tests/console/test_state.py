"""Rows of states: their layout, and that a row from a stranger does no harm."""

import os
import subprocess
import sys

import numpy as np

from fastpong.console import cartridge, controls, plain
from fastpong.console.state import FIELDS, STATE, STATE_BYTES, clip, records
from fastpong.kernels.compile.cache import cache_folder
from tests.console.pair import console


def test_layout() -> None:
    """RAM first, then every field in its order and without a gap; rows begin at cache lines."""
    assert STATE.names is not None and STATE.fields is not None
    assert STATE.names == ("ram", *(field.name for field in FIELDS), "unused")
    end = 0
    for name in STATE.names:
        kind, offset = STATE.fields[name][:2]
        assert offset == end
        end += kind.itemsize
    assert end == STATE_BYTES and STATE_BYTES % 64 == 0
    for field in FIELDS:
        kind = STATE.fields[field.name][0]
        assert kind.shape == ((field.size,) if field.size > 1 else ())
        assert np.iinfo(kind.base).min <= field.low <= field.high <= np.iinfo(kind.base).max


def test_clip() -> None:
    """Every number comes into its range, whatever it was; what is in its range, and RAM, stays."""
    rows = np.random.default_rng(1).integers(0, 256, (200, STATE_BYTES), np.uint8)
    before = records(rows.copy())
    for row in rows:
        clip(row.view(np.int32), row.view(np.int16))
    states = records(rows)
    for field in FIELDS:
        np.testing.assert_array_equal(states[field.name], np.clip(before[field.name], field.low, field.high))
    np.testing.assert_array_equal(states["ram"], before["ram"])


STRANGERS = 2_000


def strangers() -> None:
    """Emulate two frames from rows of any bytes, and from rows of a game in which some bytes were changed.

    The cartridge is Pong, and sometimes any bytes.
    """
    rng, rom, (game, screen) = np.random.default_rng(2), cartridge.read(), console()
    controls.boot(plain.frame, game, rom, screen)
    played = np.frombuffer(game.tobytes(), np.uint8)
    for k in range(STRANGERS):
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
    print("done")


def test_rows_of_strangers() -> None:
    """Frames end, states stay in their ranges, and no index is out of bounds, which Numba checks only if asked to."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": f"{cache_folder('console')}-checked"}
    command = [sys.executable, "-c", "from tests.console.test_state import strangers; strangers()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
