"""Weights that a run keeps from its way, to look back at how its decisions came to be."""

import contextlib
from pathlib import Path

import numpy as np

from fastpong import files
from fastpong.arrays import Arrays
from fastpong.runs.checkpoint import CheckpointError, file_name, save, saved_in, steps_of
from fastpong.runs.facts import Facts
from fastpong.runs.owner import Owner

BEGINS = (0, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000)
"""The first weights from each of these steps on are kept: those that nothing has learned, then those of updates."""


class History:
    """The folder ``history/`` of a run."""

    def __init__(self, folder: Path, owner: Owner):
        self._folder, self._owner = folder, owner
        self._begin = -1  # the one of `BEGINS` that is dealt with

    def paths(self) -> list[Path]:
        """Return the files, in the order of their steps: as those of candidates, but of half the precision."""
        return saved_in(self._folder)

    def add(self, weights: Arrays, facts: Facts) -> None:
        """Keep weights, by name, if they are the first from one of `BEGINS` on.

        What cannot be written is left out, as is what holds NaN: it is of no use to training, whose next checkpoint
        says what is wrong.
        """
        begin = max(steps for steps in BEGINS if steps <= facts.steps)
        known, self._begin = self._begin, begin
        if begin == known or any(begin <= steps_of(path) <= facts.steps for path in self.paths()):
            return
        with np.errstate(over="ignore"):
            arrays: Arrays = {f"policy.{name}": array.astype(np.float16) for name, array in weights.items()}
        if all(np.isfinite(array).all() for array in arrays.values()):
            with contextlib.suppress(CheckpointError, OSError), self._owner.writing():
                files.make_folder(self._folder)
                save(self._folder / file_name(facts.steps), arrays, facts.about())

    def drop_after(self, steps: int) -> None:
        """Delete what a run that goes on from so many steps will keep anew."""
        self._begin = -1
        for path in self.paths():
            if steps_of(path) > steps:
                files.delete(path)
