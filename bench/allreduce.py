"""Time allreduces over ranks that do nothing else; `ranks.py` and `hosts.py` start it.

    mpiexec -n 2 python -m bench.allreduce SIZE … [--rounds 100]

Rank 0 prints the median seconds of summing SIZE float32 numbers, for each size, as a JSON list.
"""

import json
import statistics
from functools import partial

import numpy as np

from bench.common import parser, timed
from fastpong.parallel.mpi import connect


def main() -> None:
    """Time each size."""
    options = parser(__doc__)
    options.add_argument("sizes", type=int, nargs="+")
    options.add_argument("--rounds", type=int, default=100)
    arguments = options.parse_args()
    comm, medians = connect(), []
    for size in arguments.sizes:
        buffer = np.zeros(size, np.float32)  # zeros stay finite
        times = [timed(partial(comm.allreduce, buffer)) for _ in range(arguments.rounds + 1)]
        medians.append(statistics.median(times[1:]))
    if comm.rank == 0:
        print(json.dumps(medians))


if __name__ == "__main__":
    main()
