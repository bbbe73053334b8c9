"""How envs are divided among subprocesses, and cut into groups that are stepped in turns."""

from typing import NamedTuple

import numpy as np

from fastpong.arrays import I64
from fastpong.errors import UsageError
from fastpong.parallel.machine import usable_cores


class Division(NamedTuple):
    """Which worker has which envs, and which envs are in which group."""

    owned: list[I64]
    """Envs of each worker, ascending; the first worker has the most."""

    cuts: list[list[int]]
    """Where the envs of each worker are cut into groups."""

    rows: I64
    """The row of each env in arrays that have as many rows for every worker as the first one needs."""

    groups: list[I64]
    """Envs of each group, ascending."""

    parts: list[list[tuple[int, slice]]]
    """For each group the workers that take part in it, and where their envs stand in it."""


def check_workers(env_count: int, workers: int | None, local_size: int = 1) -> int:
    """Return the number of subprocesses for some envs; raises `UsageError`.

    By default it is one per usable core, divided among the `local_size` ranks that share these cores.
    """
    if workers is None:
        return min(env_count, max(1, usable_cores() // local_size))
    if workers < 1:
        raise UsageError(f"--workers must be 1 or more, not {workers}")
    if workers > env_count:
        raise UsageError(
            f"{workers} workers have too little to do with {env_count} envs: use --workers {env_count} or fewer"
        )
    return workers


def divide(env_count: int, workers: int, groups: int) -> Division:
    """Divide envs evenly: every worker takes part in every group, if it has enough of them."""
    owned = np.array_split(np.arange(env_count), workers)
    rows, cuts = np.zeros(env_count, np.int64), []
    members: list[list[int]] = [[] for _ in range(groups)]
    parts: list[list[tuple[int, slice]]] = [[] for _ in range(groups)]
    for worker, envs in enumerate(owned):
        rows[envs] = worker * len(owned[0]) + np.arange(len(envs))
        sizes = [len(part) for part in np.array_split(envs, groups)]
        turn = worker % groups  # which group gets a remainder differs, so that groups are of one size
        cuts.append(np.cumsum(sizes[turn:] + sizes[:turn])[:-1].tolist())
        for group, part in enumerate(np.split(envs, cuts[-1])):
            if len(part):
                start = len(members[group])
                parts[group].append((worker, slice(start, start + len(part))))
                members[group] += part.tolist()
    return Division(owned, cuts, rows, [np.array(group, np.int64) for group in members], parts)
