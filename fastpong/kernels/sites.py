"""Which sites of the convolution see something, and what each run of pixels adds to them.

The court (160×80 pixels of 0 or 1, three or so frames deep) is cut into cells of 8×4 pixels. A *site* is a corner
where four cells meet: it sees these 16×8 pixels, so each pixel is seen by four sites, and neighbouring sites are
8 rows or 4 columns apart. Of 441 sites about 27 see a set pixel.

None of this depends on weights: it is listed once for a batch, and serves all passes over it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels.images import COURT, RUN
from fastpong.kernels.jit import kernel

I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

Listed = tuple[I64, I16, I64, I64]
"""What `list_sites` returns."""

CELL = (RUN, 4)
"""Rows and columns of a cell."""
GRID = (COURT[0] // CELL[0] + 1, COURT[1] // CELL[1] + 1)
"""Rows and columns of sites."""
SITES = GRID[0] * GRID[1]

_ROWS, _COLUMNS, _WIDTH = CELL[0], CELL[1], GRID[1]
_COURT_WIDTH = COURT[1]

ROW_BITS, ENTRY_BITS = 10, 9
"""Bits of a row of the prefix sums (36 for each of up to 16 frames), and of an entry of a sample (up to 441)."""


@kernel
def pack(
    within: Any,
    above: Any,
    e0: int,
    e1: int,
    e2: int,
    e3: int,
) -> Any:
    """Pack what a run adds: row `within` minus row `above` of the prefix sums, a quarter to each of four entries."""
    entries = e0 | e1 << ENTRY_BITS | e2 << 2 * ENTRY_BITS | e3 << 3 * ENTRY_BITS
    return within | above << ROW_BITS | entries << 2 * ROW_BITS


@kernel
def unpack(
    move: int,  # see pack
) -> tuple[int, int, int, int, int, int]:
    """Undo `pack`."""
    row, entry = (1 << ROW_BITS) - 1, (1 << ENTRY_BITS) - 1
    rest = move >> 2 * ROW_BITS
    return (
        move & row, move >> ROW_BITS & row, rest & entry, rest >> ENTRY_BITS & entry,
        rest >> 2 * ENTRY_BITS & entry, rest >> 3 * ENTRY_BITS,
    )  # fmt: skip


@kernel
def list_sites(
    runs: I32,  # (…,) see images.find_runs
    starts: I64,  # (rows · games,)
    lengths: I64,  # (rows · games,)
    ages: I64,  # (rows · games,) steps of the game before this screen
    games: int,  # the sample before sample s is s − games
    samples: I64,  # (m,) indices into these arrays
    frames: int,  # how many screens are seen
) -> Listed:
    """List the sites of some samples that see something.

    Returns
    -------
    bounds : int64 (m + 1,)
        The entries of sample i are ``bounds[i] … bounds[i + 1] − 1``.
    sites : int16 (entries,)
        The site of each entry.
    run_bounds : int64 (m + 1,)
        The same for its runs, in all frames.
    moves : int64 (runs,)
        What each run adds, see `pack`; entries are counted from the sample's first.
    """
    count = 0
    for m in range(len(samples)):
        for f in range(min(ages[samples[m]] + 1, frames)):
            count += lengths[samples[m] - f * games]
    moves, run_bounds = np.empty(count, np.int64), np.empty(len(samples) + 1, np.int64)
    sites, bounds = np.empty(min(4 * count, SITES * len(samples)), np.int16), np.empty(len(samples) + 1, np.int64)
    marks = np.zeros(SITES, np.int64)  # 1 + entry of each site, if it is one of this sample's
    entry = move = 0
    for m in range(len(samples)):
        first = entry
        bounds[m], run_bounds[m] = entry, move
        for f in range(min(ages[samples[m]] + 1, frames)):
            sample = samples[m] - f * games
            for k in range(starts[sample], starts[sample] + lengths[sample]):
                length, position = np.int64(runs[k]) % RUN + 1, np.int64(runs[k]) // RUN
                row, column = position // _COURT_WIDTH, position % _COURT_WIDTH
                corner = row // _ROWS * _WIDTH + column // _COLUMNS
                for d in range(4):
                    site = corner + (d >> 1) * _WIDTH + (d & 1)
                    if marks[site] <= first:
                        sites[entry] = site
                        entry += 1
                        marks[site] = entry
                base = (f * _COLUMNS + column % _COLUMNS) * (_ROWS + 1) + row % _ROWS
                moves[move] = pack(
                    base + length, base, marks[corner] - 1 - first, marks[corner + 1] - 1 - first,
                    marks[corner + _WIDTH] - 1 - first, marks[corner + _WIDTH + 1] - 1 - first,
                )  # fmt: skip
                move += 1
    bounds[len(samples)], run_bounds[len(samples)] = entry, move
    return bounds, sites[:entry], run_bounds, moves


@kernel
def group_by_site(
    bounds: I64,  # see list_sites
    sites: I16,
    picks: I64,  # (m,) which of the listed samples
    groups: I64,  # (442,) out: site s has the places groups[s] … groups[s + 1] − 1
    firsts: I64,  # (m + 1,) out: the entries of pick i are firsts[i] … firsts[i + 1] − 1
    places: I64,  # (…,) out: the place of each of these entries, in order of the sites
    owners: I64,  # (…,) out: the pick that each place belongs to
) -> None:
    """Sort the entries of some of the listed samples by site, so that each site's weights are used in one go."""
    groups[:] = 0
    for m in range(len(picks)):
        for e in range(bounds[picks[m]], bounds[picks[m] + 1]):
            groups[np.int64(sites[e]) + 1] += 1
    for s in range(1, len(groups)):
        groups[s] += groups[s - 1]
    at = 0
    for m in range(len(picks)):
        firsts[m] = at
        for e in range(bounds[picks[m]], bounds[picks[m] + 1]):
            site = np.int64(sites[e])
            places[at] = groups[site]
            owners[groups[site]] = m
            groups[site] += 1
            at += 1
    firsts[len(picks)] = at
    for s in range(len(groups) - 1, 0, -1):
        groups[s] = groups[s - 1]
    groups[0] = 0
