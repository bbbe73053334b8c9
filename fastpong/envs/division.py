"""How envs are divided among subprocesses, and cut into groups that are stepped in turns."""

from typing import NamedTuple

import numpy as np

from fastpong.arrays import I64
from fastpong.errors import UsageError
from fastpong.parallel.machine import usable_cores

_FEWEST = 16
"""Envs of a worker at least, if nobody says how many workers there are: 64 envs train as fast with 4 as with 16."""


class Division(NamedTuple):
    """Which worker has which envs, and which envs are in which group."""

    owned: list[range]
    """Envs of each worker; the first worker has the most."""

    cuts: list[list[range]]
    """Of each worker, its envs in each group, counted from its own first one."""

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
    if not isinstance(workers, int | np.integer) or workers < 1:
        raise UsageError(f"workers must be an integer, 1 or more, not {workers!r}")
    if workers > env_count:
        raise UsageError(f"{workers} workers have too little to do with {env_count} envs: use {env_count} or fewer")
    return workers


def acting_workers(env_count: int, workers: int | None, engine: str, local_size: int = 1) -> int:
    """Return the number of subprocesses for some envs whose caller acts while they step; raises `UsageError`.

    Acting takes as long as the console's steps do: by default the caller has a core of its own, and the subprocesses
    the others. With ALE, which takes many times as long, it is the number that `check_workers` returns.
    """
    if workers is None and engine != "ale":
        workers = max(1, min(usable_cores() // local_size - 1, env_count // _FEWEST))
    return check_workers(env_count, workers, local_size)


def divide(env_count: int, workers: int, groups: int) -> Division:
    """Divide envs evenly: every worker takes part in every group, if it has enough of them."""
    owned, cuts = _even(env_count, workers), []
    members: list[list[int]] = [[] for _ in range(groups)]
    parts: list[list[tuple[int, slice]]] = [[] for _ in range(groups)]
    for worker, envs in enumerate(owned):
        # Which group gets a remainder differs, so that groups are of one size.
        cuts.append(_even(len(envs), groups, turn=worker % groups))
        for group, part in enumerate(cuts[-1]):
            if part:
                start = len(members[group])
                parts[group].append((worker, slice(start, start + len(part))))
                members[group] += envs[part.start : part.stop]
    return Division(owned, cuts, [np.array(group, np.int64) for group in members], parts)


def _even(count: int, parts: int, turn: int = 0) -> list[range]:
    """Cut some envs into ranges of one size, but for a remainder: the first ones but `turn` are larger."""
    sizes = [count // parts + (part < count % parts) for part in range(parts)]
    ends = np.cumsum([0, *sizes[turn:], *sizes[:turn]]).tolist()
    return [range(start, stop) for start, stop in zip(ends, ends[1:], strict=False)]
