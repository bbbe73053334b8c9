"""Several processes that learn as one: who they are, and how they add up, share and stop.

Every rank steps its share of the games and adds up its share of each gradient; all of them then take the same step.
Nothing else in the program knows how ranks talk: alone, every method does nothing. This is the only module
that loads mpi4py, and only if the process was started by an MPI launcher.
"""

import sys
import time
import zlib
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from fastpong.cores import allowed_cores
from fastpong.errors import RanksError, UsageError
from fastpong.launcher import launched


class Ranks(Protocol):
    """The processes of a run.

    Attributes
    ----------
    rank, size : int
        Which one this is, 0 … size − 1, and how many there are.
    neighbours : int
        How many of them, this one included, may run on the same cores of this machine. Launchers that bind ranks to
        cores of their own leave each rank alone.
    seconds : float
        Time spent in these methods so far, waiting for the others included.
    """

    rank: int
    size: int
    neighbours: int
    seconds: float

    def sum(self, array: npt.NDArray[Any], wire: str = "float32") -> None:
        """Add up an array over all ranks, in place, bit for bit the same on all of them.

        With ``wire="bfloat16"`` a float32 array travels in half the bytes, rounded to 8 bits of mantissa on each of
        its two ways; the sums themselves are float32.
        """

    def share(self, value: Any) -> list[Any]:
        """Give every rank the values of all, in the order of ranks."""

    def collect(self, value: Any) -> list[Any] | None:
        """Give rank 0 the values of all, and the others None."""

    def from_first(self, value: Any) -> Any:
        """Give every rank the value of rank 0."""

    def wait(self) -> None:
        """Sleep until all are here, without keeping a core busy."""

    def abort(self, code: int) -> NoReturn:
        """End all ranks at once, with this exit code."""


class Alone:
    """One process: there is nobody to talk to."""

    rank, size, neighbours, seconds = 0, 1, 1, 0.0

    def sum(self, array: npt.NDArray[Any], wire: str = "float32") -> None:
        """Nothing to add."""

    def share(self, value: Any) -> list[Any]:
        """Return the only value."""
        return [value]

    def collect(self, value: Any) -> list[Any] | None:
        """Return the only value."""
        return [value]

    def from_first(self, value: Any) -> Any:
        """Return the value."""
        return value

    def wait(self) -> None:
        """Nobody to wait for."""

    def abort(self, code: int) -> NoReturn:
        """End this process."""
        sys.exit(code)


class Mpi:
    """Processes started by ``mpiexec``. See `Ranks`."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        here = self._world.Split_type(MPI.COMM_TYPE_SHARED)
        mine = allowed_cores()
        self.neighbours = sum(bool(mine & other) for other in here.allgather(mine))
        here.Free()
        self.seconds = 0.0

    def sum(self, array: npt.NDArray[Any], wire: str = "float32") -> None:
        """See `Ranks`."""
        began = time.perf_counter()
        if wire == "bfloat16":
            self._sum_rounded(array)
        else:
            self._world.Allreduce(self._mpi.IN_PLACE, array)
        self.seconds += time.perf_counter() - began

    def _sum_rounded(self, array: npt.NDArray[np.float32]) -> None:
        """Each rank adds up one piece of the array and hands it round: the two ways of a ring, in bfloat16."""
        piece = -(-array.size // self.size)
        padded = np.zeros(piece * self.size, np.float32)
        padded[: array.size] = array
        mine = np.empty((self.size, piece), np.uint16)
        self._world.Alltoall(to_bfloat16(padded), mine)
        total = from_bfloat16(mine).sum(axis=0, dtype=np.float32)
        everything = np.empty(piece * self.size, np.uint16)
        self._world.Allgather(to_bfloat16(total), everything)
        array[:] = from_bfloat16(everything)[: array.size]

    def share(self, value: Any) -> list[Any]:
        """See `Ranks`."""
        began = time.perf_counter()
        values: list[Any] = self._world.allgather(value)
        self.seconds += time.perf_counter() - began
        return values

    def collect(self, value: Any) -> list[Any] | None:
        """See `Ranks`."""
        began = time.perf_counter()
        values: list[Any] | None = self._world.gather(value)
        self.seconds += time.perf_counter() - began
        return values

    def from_first(self, value: Any) -> Any:
        """See `Ranks`."""
        began = time.perf_counter()
        value = self._world.bcast(value)
        self.seconds += time.perf_counter() - began
        return value

    def wait(self) -> None:
        """See `Ranks`; a plain barrier would spin."""
        request = self._world.Ibarrier()
        while not request.Test():
            time.sleep(0.02)

    def abort(self, code: int) -> NoReturn:
        """See `Ranks`."""
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(0.5)  # the launcher kills the ranks at once, and loses what it has not read yet
        self._world.Abort(code)
        raise AssertionError("MPI_Abort does not return")


def to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Round float32 to the nearest bfloat16, the upper half of its bits."""
    return ((values.view(np.uint32) + np.uint32(0x8000)) >> np.uint32(16)).astype(np.uint16)


def from_bfloat16(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return the float32 numbers that these bfloat16 bits are."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def connect(mpi: bool = True) -> Ranks:
    """Return the ranks of this run: `Mpi` if a launcher started several processes, else `Alone`.

    Raises
    ------
    UsageError
        If a launcher started several and `mpi` is false: each of them would do the same work and overwrite the
        others' files.
    RanksError
        If mpi4py or the MPI library is missing, or is not the one of the launcher. Every rank gets it; only rank 0
        should report it.
    """
    rank, size = launched()
    if size == 1:
        return Alone()
    if not mpi:
        raise UsageError(f"the launcher started {size} processes, but with --no-mpi each would train alone: drop one")
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        raise RanksError(
            f"the launcher started {size} processes, but mpi4py is not installed: pip install 'fastpong[mpi]'"
        ) from None
    try:
        ranks = Mpi()
    except (ImportError, RuntimeError) as error:
        detail = str(error).splitlines()[0]
        message = f"mpi4py finds no MPI library ({detail}): install the launcher's, or pip install mpich"
        raise RanksError(message) from None
    if ranks.size != size:
        raise RanksError(
            f"the launcher started {size} processes, but MPI sees {ranks.size}: mpiexec and mpi4py belong to "
            "different MPI libraries; use the mpiexec of the library that mpi4py loads"
        )
    return ranks


def share_of(count: int, rank: int, size: int) -> range:
    """Return which of `count` games a rank steps: as even as can be, consecutive."""
    return range(rank * count // size, (rank + 1) * count // size)


def check_equal(ranks: Ranks, weights: npt.NDArray[np.float32]) -> None:
    """Make sure that all ranks have the same weights, bit for bit; raises `RanksError` on all of them if not."""
    hashes = ranks.share(zlib.crc32(weights.tobytes()))
    odd = [rank for rank, value in enumerate(hashes) if value != hashes[0]]
    if odd:
        raise RanksError(
            f"the weights of rank {odd[0]} differ from those of rank 0: the machines do not compute alike; "
            "run all ranks on the same kind of processor and the same versions"
        )
