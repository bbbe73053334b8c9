"""What not every system has, with what stands in for it elsewhere: here, all of it.

Linux has memory without a name, a choice of cores, /proc and a signal when the parent ends; macOS and others have not.
Nothing else needs Linux: MPICH leaves files in /dev/shm only where there is one, see `fastpong.parallel.mpi.sweep`.
Windows has no `os.fork`, nor much else that is used, and is refused.
"""

import contextlib
import os
import platform
import signal
import threading
import time
from pathlib import Path

from fastpong.errors import FastpongError

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def require_unix() -> None:
    """Raise `FastpongError` on Windows."""
    if not hasattr(os, "fork"):
        raise FastpongError("Linux or macOS is needed: on Windows use WSL 2 (wsl --install)")


def unnamed_file(label: str) -> int:
    """Return the descriptor of an empty file that has no name: nothing is left of it, however its users end.

    Its bytes are in memory; elsewhere on the disk of temporary files, its name deleted.
    """
    with contextlib.suppress(AttributeError, OSError):  # a sandbox may refuse it as well
        return os.memfd_create(label)
    from tempfile import mkstemp

    file, path = mkstemp(prefix=label)
    os.unlink(path)
    return file


def allowed_cores() -> set[int]:
    """Return the numbers of the cores that this process may run on; elsewhere all."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def pin(process: int | None, worker: int, workers: int) -> None:
    """Keep an env subprocess on a core of its own, where each core has one of the `workers`; elsewhere do nothing.

    For steps that end with all envs waiting: a subprocess that is woken then never waits for the core of another one.
    """
    cores = sorted(allowed_cores())
    if len(cores) == workers > 1 and process and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process, {cores[worker]})


def processor() -> str:
    """Return the name of this machine's processor; elsewhere that of its kind."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def processor_time(process: int | None) -> float:
    """Return the seconds for which a process has had a processor, 0 if it is gone.

    Elsewhere they are the clock's, as if it always worked: then it hangs if it does not answer for a minute.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0 if os.path.exists("/proc/self/stat") else time.monotonic()


def die_with_parent() -> None:
    """Let this process be killed when the one that started it ends; elsewhere within a second."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
