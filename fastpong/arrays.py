"""Names of the array types that signatures use; a comment or docstring beside each gives the shape."""

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
