"""Several processes that learn as one: the communicator, and what one process alone does in its place.

Every rank steps its share of the envs and adds up its share of each gradient; all of them then take the same step.
"""

import sys
import zlib
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from fastpong.arrays import F32
from fastpong.errors import RanksError


class Communicator(Protocol):
    """The processes of a run.

    Attributes
    ----------
    rank, size : int
        Which one this is, 0 … size − 1, and how many there are.
    local_size : int
        How many of them, this one included, may run on the same cores of this machine. Launchers that bind ranks to
        cores of their own leave each rank alone.
    seconds : float
        Time spent in these methods so far, waiting for the others included.
    """

    rank: int
    size: int
    local_size: int
    seconds: float

    def allreduce(self, array: npt.NDArray[Any]) -> None:
        """Add up an array over all ranks, in place, bit for bit the same on all of them."""

    def allgather(self, value: Any) -> list[Any]:
        """Give every rank the values of all, in the order of ranks."""

    def gather(self, value: Any) -> list[Any] | None:
        """Give rank 0 the values of all, and the others None."""

    def broadcast(self, value: Any) -> Any:
        """Give every rank the value of rank 0."""

    def barrier(self) -> None:
        """Sleep until all are here, without keeping a core busy."""

    def abort(self, code: int) -> NoReturn:
        """End all ranks at once, with this exit code."""


class Serial:
    """A run of one process. See `Communicator`. With `size` above 1 it does what one of so many ranks does, alone."""

    rank, local_size, seconds = 0, 1, 0.0

    def __init__(self, size: int = 1):
        self.size = size

    def allreduce(self, array: npt.NDArray[Any]) -> None:
        """No-op."""

    def allgather(self, value: Any) -> list[Any]:
        """Return the only value."""
        return [value]

    def gather(self, value: Any) -> list[Any] | None:
        """Return the only value."""
        return [value]

    def broadcast(self, value: Any) -> Any:
        """Return the value."""
        return value

    def barrier(self) -> None:
        """No-op."""

    def abort(self, code: int) -> NoReturn:
        """End this process."""
        sys.exit(code)


def env_range(count: int, rank: int, size: int) -> range:
    """Return which of `count` envs a rank steps: consecutive ones, as many for each rank as can be."""
    return range(rank * count // size, (rank + 1) * count // size)


def normalized(values: F32, comm: Communicator, centred: bool = True) -> F32:
    """Give values float32 (any,) mean 0 and standard deviation 1 over all ranks, with float64 sums.

    If not `centred`, they keep their signs, and their root mean square becomes 1.
    """
    sums = np.array([values.size, values.sum(dtype=np.float64)])
    comm.allreduce(sums)
    count = max(1.0, float(sums[0]))
    deviations = values - (sums[1] / count if centred else 0.0)
    square = np.array([np.square(deviations).sum()])
    comm.allreduce(square)
    scaled: F32 = (deviations / (np.sqrt(square[0] / count) + 1e-8)).astype(np.float32)
    return scaled


def check_same_weights(comm: Communicator, weights: F32) -> None:
    """Make sure that all ranks have the same weights, bit for bit; raises `RanksError` on all of them if not."""
    hashes = comm.allgather(zlib.crc32(weights.tobytes()))
    odd = [rank for rank, value in enumerate(hashes) if value != hashes[0]]
    if odd:
        raise RanksError(
            f"the weights of rank {odd[0]} differ from those of rank 0: the machines do not compute alike; "
            "run all ranks on the same kind of processor and the same versions"
        )
