"""Groups of runs, and what is said of each: its median over the runs, and how sure that is.

A median stands only where all runs of a group are known: where a run ends, the median would jump.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastpong.arrays import F64
from fastpong.show.curve import Points

BAND_FROM = 5
"""Runs from which on a group has intervals: of fewer they would hardly be less than from the least to the greatest."""

RESAMPLES = 2000
_PLACES = 200


@dataclass(frozen=True)
class Run:
    """A run: its curve, and, by score, the x at which 100 games had that mean, if they ever had."""

    points: Points
    reached: dict[float, float]

    @property
    def end(self) -> float:
        """The last x."""
        return self.points[-1][0]


@dataclass(frozen=True)
class Group:
    """Runs of the same settings."""

    name: str
    runs: list[Run]

    def __str__(self) -> str:
        """Name it, and say how many runs it has, if it is not a single one."""
        return self.name if len(self.runs) == 1 else f"{self.name}, {len(self.runs)} runs"


class Band(NamedTuple):
    """Median over the runs of a group at each x, float64; `low` and `high` are None of fewer than `BAND_FROM` runs."""

    x: F64
    median: F64
    low: F64 | None
    high: F64 | None


class Reached(NamedTuple):
    """When the runs of a group reached a score.

    `times` has the x of each run that did, `missed` the last x of each that did not, and may still have done so later.
    So the median is `median`, or later if it is not `sure`. `low` and `high` are its interval, None of fewer than
    `BAND_FROM` runs; `high` is infinite where nobody knows it.
    """

    times: list[float]
    missed: list[float]
    median: float
    sure: bool
    low: float | None
    high: float | None

    def told_misses(self, digits: int) -> str:
        """Say how many did not reach it, and until when: ``2 of 5 not by 2.5``; nothing if all did."""
        if not self.missed:
            return ""
        first, last = f"{min(self.missed):.{digits}f}", f"{max(self.missed):.{digits}f}"
        until = last if first == last else f"{first} … {last}"
        runs = len(self.times) + len(self.missed)
        return f"not by {until}" if runs == 1 else f"{len(self.missed)} of {runs} not by {until}"


def interval(values: F64) -> tuple[F64, F64]:
    """Return where 95 % of the bootstrapped medians of each column lie; `values` are float64 (runs, columns).

    A resample takes ranks, the same ones in all columns. The seed is fixed.
    """
    runs = len(values)
    drawn = np.sort(np.random.default_rng(0).integers(0, runs, (RESAMPLES, runs)), axis=1)
    ordered = np.sort(values, axis=0)
    medians = np.sort((ordered[drawn[:, (runs - 1) // 2]] + ordered[drawn[:, runs // 2]]) / 2, axis=0)
    return medians[math.ceil(0.025 * RESAMPLES) - 1], medians[math.ceil(0.975 * RESAMPLES) - 1]


def band(group: Group) -> Band | None:
    """Return the median score of a group, from where all its runs have one until the shortest ends; None: nowhere."""
    begin, end = max(run.points[0][0] for run in group.runs), min(run.end for run in group.runs)
    if begin > end:
        return None
    x = np.linspace(begin, end, _PLACES)
    scores = np.array([np.interp(x, *np.array(run.points, np.float64).T) for run in group.runs])
    low, high = interval(scores) if len(scores) >= BAND_FROM else (None, None)
    return Band(x, np.median(scores, axis=0), low, high)


def reached(group: Group, score: float) -> Reached:
    """Return when the runs of a group reached a score."""
    times = [run.reached[score] for run in group.runs if score in run.reached]
    missed = [run.end for run in group.runs if score not in run.reached]
    latest = np.array([*times, *[math.inf] * len(missed)])
    soonest = np.array([*times, *missed])  # if those that were stopped had reached it right then
    median, least = float(np.median(latest)), float(np.median(soonest))
    low = high = None
    if len(latest) >= BAND_FROM:
        low, high = float(interval(soonest[:, None])[0][0]), float(interval(latest[:, None])[1][0])
    return Reached(times, missed, least, median == least, low, high)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places for labels between `low` and `high`, near those wanted, and `gap` apart as far as there is room."""
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda one: wanted[one])
    places = [min(max(wanted[one], low), high) for one in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    places[-1] = min(places[-1], high)
    for i in reversed(range(len(places) - 1)):
        places[i] = min(places[i], places[i + 1] - gap)
    return [place for _, place in sorted(zip(order, places, strict=True))]
