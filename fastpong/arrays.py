"""Names of the array types that signatures use, and the digest of files that hold arrays or code.

A comment or docstring beside each use of a type gives the shape.
"""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

Arrays = dict[str, npt.NDArray[Any]]
"""A state: arrays by name."""

DIGEST = 32
"""Bytes of a `digest`."""


def digest(data: "bytes | memoryview[int]") -> bytes:
    """Return the BLAKE2b digest that a file has at its end, to find accidental damage."""
    return hashlib.blake2b(data, digest_size=DIGEST).digest()
