"""What an MPI launcher tells this process."""

import os

LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, and Slurm's srun with PMI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),  # MVAPICH2
)
"""What MPI launchers tell the processes they start: the names of rank and number of ranks."""


def launched() -> tuple[int, int]:
    """Return rank and number of ranks as the launcher tells them; (0, 1) without a launcher."""
    for rank, size in LAUNCHERS:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1
