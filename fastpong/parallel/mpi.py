"""Ranks that an MPI launcher started. The only module that loads mpi4py, and only under such a launcher."""

import contextlib
import glob
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy.typing as npt

from fastpong.errors import RanksError, UsageError, install
from fastpong.parallel.comm import Communicator, Serial
from fastpong.parallel.machine import launched
from fastpong.system import allowed_cores, die_with_parent

WAIT_SECONDS = 30.0
"""A rank that has waited for the others for so long says so, once for each time."""

_SHARED, _OLD_SECONDS = "/dev/shm/mpich_shm_*", 60.0
"""Shared memory of MPICH's jobs, which a killed one leaves; a job that starts has it mapped within a minute."""


def sweep() -> None:
    """Delete shared memory that a killed job of this user left on this machine: old, and mapped by no process."""
    left = set()
    for name in glob.glob(_SHARED):
        with contextlib.suppress(OSError):
            facts = os.stat(name)
            if facts.st_uid == os.getuid() and time.time() - facts.st_mtime > _OLD_SECONDS:
                left.add(name)
    for maps in glob.glob("/proc/[0-9]*/maps") if left else ():
        with contextlib.suppress(OSError):
            text = Path(maps).read_text()
            left = {name for name in left if name not in text}
    for name in left:
        with contextlib.suppress(OSError):
            os.unlink(name)


class Mpi:
    """Processes started by ``mpiexec``. See `Communicator`."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        here = self._world.Split_type(MPI.COMM_TYPE_SHARED)
        mine = allowed_cores()
        self.local_size = sum(bool(mine & other) for other in here.allgather(mine))
        here.Free()
        sweep()
        self.seconds = self._began = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def allreduce(self, array: npt.NDArray[Any]) -> None:
        """See `Communicator`."""
        self._timed(self._world.Allreduce, self._mpi.IN_PLACE, array)

    def allgather(self, value: Any) -> list[Any]:
        """See `Communicator`."""
        values: list[Any] = self._timed(self._world.allgather, value)
        return values

    def gather(self, value: Any) -> list[Any] | None:
        """See `Communicator`."""
        values: list[Any] | None = self._timed(self._world.gather, value)
        return values

    def broadcast(self, value: Any) -> Any:
        """See `Communicator`."""
        return self._timed(self._world.bcast, value)

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self._began = time.perf_counter()
        result = call(*arguments)
        self.seconds += time.perf_counter() - self._began
        self._began = 0.0
        return result

    def _watch(self) -> None:
        told = 0.0
        while True:
            time.sleep(WAIT_SECONDS / 10)
            began = self._began
            if began > told and time.perf_counter() - began > WAIT_SECONDS:
                told = began
                with contextlib.suppress(OSError):
                    text = f"rank {self.rank} has waited for {WAIT_SECONDS:.0f} s: look at the ranks that do not say so"
                    print(text, file=sys.stderr, flush=True)

    def barrier(self) -> None:
        """See `Communicator`; a plain barrier would spin."""
        request = self._world.Ibarrier()
        while not request.Test():
            time.sleep(0.02)

    def abort(self, code: int) -> NoReturn:
        """See `Communicator`."""
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(0.5)  # the launcher kills the ranks at once, and loses what it has not read yet
        self._world.Abort(code)
        os._exit(code)  # in rank 0 MPICH's may return


def connect(mpi: bool = True) -> Communicator:
    """Return the communicator of this run: `Mpi` if a launcher started several processes, else `Serial`.

    Raises `UsageError` if a launcher started several and `mpi` is false: each of them would do the same work and
    overwrite the others' files. Raises `RanksError`, on every rank, if mpi4py or the MPI library is missing, or is not
    the launcher's.
    """
    _, size = launched()
    if size == 1:
        return Serial()
    if not mpi:
        raise UsageError(f"the launcher started {size} processes, but with --no-mpi each would train alone: drop one")
    die_with_parent()  # MPI would wait for the other ranks for ever
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        raise RanksError(
            f"the launcher started {size} processes, but mpi4py is not installed: {install('mpi')}"
        ) from None
    try:
        comm = Mpi()
    except (ImportError, RuntimeError) as error:
        detail = str(error).splitlines()[0]
        message = f"mpi4py finds no MPI library ({detail}): install the launcher's, or pip install mpich"
        raise RanksError(message) from None
    if comm.size != size:
        raise RanksError(
            f"the launcher started {size} processes, but MPI sees {comm.size}: mpiexec and mpi4py belong to "
            "different MPI libraries; use the mpiexec of the library that mpi4py loads"
        )
    return comm
