"""The machine: its cores, its versions of what a run needs, and the rank that an MPI launcher gives this process."""

import contextlib
import math
import os
import platform
import threading
from importlib.metadata import version
from pathlib import Path

from fastpong import __version__
from fastpong.errors import UsageError
from fastpong.system import allowed_cores


def core_quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Cores' worth of time that this process may use (``docker --cpus``, Kubernetes, systemd); inf: no limit.

    It is the smallest quota of its control group and of those above. A container sees its own group as the root.
    """
    folders = {root, root / "cpu"}
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                top = root / "cpu" if controllers else root
                folder = top / path.lstrip("/")
                folders |= {folder, *(above for above in folder.parents if above.is_relative_to(top))}
    return min(map(_quota, folders))


def _quota(folder: Path) -> float:
    """Return the quota of a control group."""
    with contextlib.suppress(OSError, ValueError):  # cgroup v2, which says "max" without a limit
        quota, period = (folder / "cpu.max").read_text().split()
        return float(quota) / float(period)
    with contextlib.suppress(OSError, ValueError):  # v1, which says −1
        quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return float(quota) / float(period) if float(quota) > 0 else math.inf
    return math.inf


def usable_cores() -> int:
    """Cores that this process may use."""
    return min(len(allowed_cores()), max(1, math.floor(min(core_quota(), 1e6))))


LEFT = b"."
"""What a subprocess reads if it is to go on without its parent."""


def end_with_parent() -> None:
    """Let this subprocess end when the process at the other end of stdin does without having said `LEFT`: killed."""

    def watch() -> None:
        if not os.read(0, len(LEFT)):
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, and Slurm's srun with PMI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),  # MVAPICH2
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),  # srun --mpi=pmix
)
"""The variables in which MPI launchers give rank and number of ranks."""


def launched() -> tuple[int, int]:
    """Return rank and number of ranks as the launcher gives them; (0, 1) without a launcher."""
    for rank, size in LAUNCHERS:
        if rank in os.environ and size in os.environ:
            try:
                return int(os.environ[rank]), int(os.environ[size])
            except ValueError:
                raise UsageError(f"{rank} and {size} are not numbers: unset them, or start with mpiexec") from None
    return 0, 1


def versions() -> dict[str, str | int]:
    """Tell what a run ran with, for its ``config.toml``."""
    packages = {name.replace("-", "_"): version(name) for name in ("numpy", "numba", "gymnasium", "ale-py")}
    return {
        "fastpong": __version__,
        "python": platform.python_version(),
        **packages,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": usable_cores(),
    }
