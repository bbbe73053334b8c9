"""How envs are divided among subprocesses, and cut into groups that are stepped in turns."""

from typing import NamedTuple

import numpy as np

from fastpong.arrays import I64
from fastpong.errors import UsageError
from fastpong.parallel.machine import usable_cores

_FEWEST = 16
"""Envs of a worker at least, if nobody says how many workers there are: 64 envs train as fast with 4 as with 16."""

_OWN_PART = 4
"""One env in so many is stepped by a caller with one worker beside it, for which it would wait.

In training a quarter of 256 envs has 1.07 of the speed of an eighth, and of 64 envs 1.02; a third 1.09 and 0.93.
"""


class Division(NamedTuple):
    """Which worker has which envs, and which envs are in which group."""

    owned: list[range]
    """Envs of each worker, the first of which has the most; then the caller's own, if there are any."""

    cuts: list[list[range]]
    """Of each of these, the envs in each group, counted from its own first one."""

    groups: list[I64]
    """Envs of each group, ascending."""

    parts: list[list[tuple[int, slice]]]
    """For each group who takes part in it, as an index of `owned`, and where its envs stand in it."""


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


def own_envs(env_count: int, workers: int, engine: str) -> int:
    """Return how many of some envs a caller had better step itself that acts while so many workers step the others."""
    return env_count // _OWN_PART if workers == 1 and engine != "ale" else 0


def divide(env_count: int, workers: int, groups: int, own: int = 0) -> Division:
    """Divide envs evenly: every worker takes part in every group, if it has enough of them.

    The last `own` envs are the caller's.
    """
    owned, cuts = _even(env_count - own, workers), []
    if own:
        owned.append(range(env_count - own, env_count))
    members: list[list[int]] = [[] for _ in range(groups)]
    parts: list[list[tuple[int, slice]]] = [[] for _ in range(groups)]
    for worker, envs in enumerate(owned):
        # A remainder goes to the groups after those that had the last one, so that groups are of one size.
        cuts.append(_even(len(envs), groups, turn=-envs.start % groups))
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
