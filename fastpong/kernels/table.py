"""A hash table with open addressing, which numbers patches in the order in which they are found."""

from typing import Any, NamedTuple

import numpy as np

from fastpong.arrays import I32, I64, U64
from fastpong.kernels.compile.jit import kernel

_SLOTS = 2048  # at first


class Table(NamedTuple):
    """The patches found so far."""

    keys: U64  # (slots, a power of 2) hash of the patch, 0: free
    names: I32  # (slots,) which patch it is
    firsts: I64  # (slots / 2,) where each patch was found


@kernel
def new_table() -> Table:
    """Return one without patches."""
    return Table(np.zeros(_SLOTS, np.uint64), np.zeros(_SLOTS, np.int32), np.zeros(_SLOTS // 2, np.int64))


@kernel
def slot_of(
    keys: U64,  # (a power of 2,) 0: free
    key: Any,  # uint64
) -> Any:
    """Return the slot of a key in the table, or the one for it."""
    last = len(keys) - 1
    at = np.int64(key >> np.uint64(33)) & last
    while keys[at] != key and keys[at] != np.uint64(0):
        at = (at + 1) & last
    return at


@kernel
def larger(table: Table) -> Table:
    """Return a table with the same patches that is twice as large."""
    keys, names = np.zeros(2 * len(table.keys), np.uint64), np.zeros(2 * len(table.keys), np.int32)
    firsts = np.empty(len(table.keys), np.int64)
    firsts[: len(table.firsts)] = table.firsts
    for i in range(len(table.keys)):
        if table.keys[i] != np.uint64(0):
            at = slot_of(keys, table.keys[i])
            keys[at], names[at] = table.keys[i], table.names[i]
    return Table(keys, names, firsts)
