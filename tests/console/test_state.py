"""Rows of states: their layout, and the ranges of what is in them; test_strangers.py has rows that might do harm."""

import numpy as np

from fastpong.console.state import FIELDS, STATE, STATE_BYTES, clip, records


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
