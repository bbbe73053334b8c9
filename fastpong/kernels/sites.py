"""What the sites of the convolution see.

The court (160×80 pixels of 0 or 1, three or so frames deep) is cut into cells of 8×4 pixels. A *site* is a corner
where four cells meet: it sees these 16×8 pixels, so each pixel is seen by four sites, and neighbouring sites are
8 rows or 4 columns apart. Of 441 sites about 25 see a set pixel.

What one of them sees, a *view*, is seen again and again: of some 200 000 in a batch 8 000 differ, and a view is mostly
met at the same few sites. So everything is computed once for each view, or once for each view at a site, and not once
for each sample. Which views there are does not depend on weights: they are listed once for a batch, and serve all
passes over it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.kernels.gathers import LENGTH_BITS
from fastpong.kernels.images import COURT, RUN
from fastpong.kernels.jit import kernel

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

CELL = (RUN, 4)
"""Rows and columns of a cell."""
GRID = (COURT[0] // CELL[0] + 1, COURT[1] // CELL[1] + 1)
"""Rows and columns of sites."""
SITES = GRID[0] * GRID[1]

_ROWS, _COLUMNS, _WIDTH = CELL[0], CELL[1], GRID[1]
_COURT_WIDTH = COURT[1]
_LEAST_SIZE = 2048  # of the table of views
_EXAMINED = 1024  # samples, to find the middle
_GOLDEN, _MUL_1, _MUL_2 = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

assert 1 << LENGTH_BITS == RUN


class Views(NamedTuple):
    """What some of the sites see in some samples; an *entry* is a site of a sample.

    A *piece* is what a run of pixels adds to a site: row `above + length` of the prefix sums (see
    `convolution.prefix_sums`) minus row `above`, written as above · 8 + length − 1.

    Attributes
    ----------
    bounds : int32 (views + 1,)
        View v has the pieces ``bounds[v] … bounds[v + 1] − 1``.
    pieces : int32 (…,)
        The pieces of each view.
    site_bounds : int32 (442,)
        Site s has the entries ``site_bounds[s] … site_bounds[s + 1] − 1``.
    kinds : int32 (entries,)
        The view of each entry, ascending within a site.
    samples : int32 (entries,)
        The sample of each entry, as an index into the listed samples.
    first, last : int
        The sites first … last − 1 are those listed; others have no entries.
    """

    bounds: I32
    pieces: I32
    site_bounds: I32
    kinds: I32
    samples: I32
    first: int
    last: int


@kernel
def _mixed(
    number: Any,
) -> Any:
    """Return 64 well-mixed bits, uint64: the finaliser of SplitMix64, see `fastpong.noise`."""
    x = np.uint64(number + 1) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MUL_1
    x = (x ^ (x >> np.uint64(27))) * _MUL_2
    return x ^ (x >> np.uint64(31))


@kernel
def _turned(
    bits: Any,  # uint64
    quarters: int,
) -> Any:
    """Turn a word by quarters of its bits."""
    left = np.uint64(16 * quarters)
    return bits << left | bits >> np.uint64(64) - left if quarters else bits


@kernel
def piece_of(
    run: Any,  # see images.find_runs
    column_of_sums: Any,  # (which of the four cells of its site it is in · frames + frame) · 4
) -> Any:
    """Return the piece that a run is of a view, see `Views`."""
    position = np.int64(run) // RUN
    row, column = position // _COURT_WIDTH % _ROWS, position % _COURT_WIDTH % _COLUMNS
    return ((column_of_sums + column) * (_ROWS + 1) + row) << LENGTH_BITS | np.int64(run) % RUN


@kernel
def cell_of(
    run: Any,
) -> Any:
    """Return the cell that a run is in, numbered by the first of the four sites that see it."""
    position = np.int64(run) // RUN
    return position // _COURT_WIDTH // _ROWS * _WIDTH + position % _COURT_WIDTH // _COLUMNS


@kernel
def _add_samples(
    runs: I32,  # as for `list_views`, here and in the next eight
    starts: I64,
    lengths: I64,
    ages: I64,
    games: int,
    samples: I64,
    frames: int,
    first: int,
    last: int,
    m: Any,  # the first sample that is to be added
    ends: I32,  # (m + 1,) in and out: entries of all samples before each; that of sample `m` is known
    known: Any,  # how many views there are
    keys: npt.NDArray[np.uint64],  # (a power of 2,) in and out: table of the views' hashes, 0: free
    names: I32,  # (a power of 2,) in and out: which views they are
    sites: I32,  # (≥ entries,) in and out: of all entries, in order of the samples
    kinds: I32,  # (≥ entries,) in and out: the same, of their views
    bounds: I32,  # (≥ views + 1,) in and out, see `Views`, here and in the next
    pieces: I32,
) -> tuple[int, int]:
    """Add samples as long as there is room for them; return the next sample, and how many views there are."""
    # Of each site, of a sample; and of each cell, which has the number of the first of its sites: its runs.
    hashes, marks = np.zeros(SITES, np.uint64), np.full(SITES, -1, np.int64)
    cells, cell_marks = np.zeros((frames, SITES, 2), np.int64), np.full((frames, SITES), -1, np.int64)
    entry: Any = np.int64(ends[m])
    made: Any = np.int64(bounds[known])
    while m < len(samples):
        begin, seen, most = entry, min(ages[samples[m]] + 1, frames), 0
        for f in range(seen):
            most += 4 * lengths[samples[m] - f * games]
        if entry + most >= len(kinds) or made + most > len(pieces) or 2 * (known + most) > len(keys):
            break
        for f in range(seen):
            sample = samples[m] - f * games
            k, end = starts[sample], starts[sample] + lengths[sample]
            while k < end:  # the runs of a cell are one after the other, and cells come in order
                head, cell, mixed = k, cell_of(runs[k]), np.uint64(0)
                if cell >= last:
                    break
                if cell + _WIDTH + 1 < first:
                    k += 1
                    continue
                while k < end and cell_of(runs[k]) == cell:
                    mixed += _mixed(piece_of(runs[k], f * _COLUMNS))
                    k += 1
                cells[f, cell, 0], cells[f, cell, 1], cell_marks[f, cell] = head, k, m
                for d in range(4):
                    site = cell + (d >> 1) * _WIDTH + (d & 1)
                    # Without a branch, since none could be foreseen. What is not this call's is not looked at again.
                    sites[entry] = site
                    entry += (marks[site] != m) & (first <= site) & (site < last)
                    marks[site] = m
                    # Turned, so that the same cell elsewhere in the view counts differently.
                    hashes[site] += _turned(mixed, d)
        for e in range(begin, entry):
            site = np.int64(sites[e])
            key = hashes[site] | np.uint64(1)  # 0: nothing is here
            hashes[site] = np.uint64(0)
            at = _place_of(keys, key)
            if keys[at] == np.uint64(0):
                keys[at], names[at] = key, known
                for f in range(seen):
                    for d in range(4):
                        cell = site - (d >> 1) * _WIDTH - (d & 1)
                        if cell >= 0 and cell_marks[f, cell] == m:
                            for k in range(cells[f, cell, 0], cells[f, cell, 1]):
                                pieces[made] = piece_of(runs[k], (d * frames + f) * _COLUMNS)
                                made += 1
                known += 1
                bounds[known] = made
            kinds[e] = names[at]
        m += 1
        ends[m] = entry
    return m, known


@kernel
def list_views(
    runs: I32,  # (…,) see images.find_runs
    starts: I64,  # (rows · games,)
    lengths: I64,  # (rows · games,)
    ages: I64,  # (rows · games,) steps of the game before this screen
    games: int,  # the sample before sample s is s − games
    samples: I64,  # (m,) indices into these arrays
    frames: int,  # how many screens are seen
    first: Any,  # the sites first … last − 1 are this call's
    last: Any,
) -> Views:
    """List what sites see in some samples.

    Two views are held to be the same if 63 bits of their hashes are, a sum over their pieces (Zobrist, "A new hashing
    method with application for game playing", 1970): of n different views two are confused with a chance of n² / 2⁶⁴,
    10⁻¹¹ for those of a batch.
    """
    size = _LEAST_SIZE
    while size < 4 * len(samples):
        size *= 2
    keys, names = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    sites, kinds, ends = (
        np.empty(4 * size, np.int32),
        np.empty(4 * size, np.int32),
        np.zeros(len(samples) + 1, np.int32),
    )
    bounds, pieces = np.zeros(4 * size + 1, np.int32), np.empty(4 * size, np.int32)
    done: Any = np.int64(0)  # not 0, for which Numba would compile once more
    known: Any = np.int64(0)
    while True:
        done, known = _add_samples(
            runs, starts, lengths, ages, games, samples, frames, first, last, done, ends, known, keys, names, sites,
            kinds, bounds, pieces,
        )  # fmt: skip
        if done == len(samples):
            break
        # Outside of the loop over samples, which would take twice as long.
        keys, names = _larger(keys, names)
        sites, kinds, bounds, pieces = _twice(sites), _twice(kinds), _twice(bounds), _twice(pieces)
    # Sorted by view, and then by site; both keep the order of equals.
    entries = ends[done]
    where, site_bounds = np.zeros(known + 1, np.int32), np.zeros(SITES + 1, np.int32)
    for e in range(entries):
        where[kinds[e] + 1] += 1
        site_bounds[sites[e] + 1] += 1
    for v in range(known):
        where[v + 1] += where[v]
    by_view = np.empty(entries, np.int64)  # sample · 2¹⁶ + site
    for m in range(len(samples)):
        for e in range(ends[m], ends[m + 1]):
            by_view[where[kinds[e]]] = m << 16 | sites[e]
            where[kinds[e]] += 1
    for s in range(SITES):
        site_bounds[s + 1] += site_bounds[s]
    sorted_kinds, owners = np.empty(entries, np.int32), np.empty(entries, np.int32)
    e, site_ends = 0, site_bounds.copy()
    for v in range(known):
        while e < where[v]:  # by now the end of the view's entries
            site = by_view[e] & 0xFFFF
            sorted_kinds[site_ends[site]], owners[site_ends[site]] = v, by_view[e] >> 16
            site_ends[site] += 1
            e += 1
    return Views(bounds[: known + 1], pieces[: bounds[known]], site_bounds, sorted_kinds, owners, first, last)


@kernel
def _twice(
    numbers: I32,
) -> I32:
    """Return an array of twice the size that begins with these."""
    more = np.empty(2 * len(numbers), np.int32)
    for i in range(len(numbers)):
        more[i] = numbers[i]
    return more


@kernel
def middle_of(
    runs: I32,  # as for `list_views`, here and in the next two
    starts: I64,
    lengths: I64,
    samples: I64,
) -> int:
    """Return the site before which about half of the entries are, going by a part of the samples."""
    counts = np.zeros(SITES, np.int64)
    for m in range(0, len(samples), max(1, len(samples) // _EXAMINED)):
        cell = -1
        for k in range(starts[samples[m]], starts[samples[m]] + lengths[samples[m]]):
            if cell_of(runs[k]) != cell:
                cell = cell_of(runs[k])
                for d in range(4):
                    counts[cell + (d >> 1) * _WIDTH + (d & 1)] += 1
    half, middle, before = counts.sum(), 0, 0
    while middle < SITES and 2 * (before + counts[middle]) <= half:
        before += counts[middle]
        middle += 1
    return middle


@kernel
def _place_of(
    keys: npt.NDArray[np.uint64],  # (a power of 2,) 0: free
    key: Any,  # uint64
) -> Any:
    """Return where a key is in the table, or is to be put."""
    last = len(keys) - 1
    at = np.int64(key >> np.uint64(33)) & last
    while keys[at] != key and keys[at] != np.uint64(0):
        at = (at + 1) & last
    return at


@kernel
def _larger(
    keys: npt.NDArray[np.uint64],
    names: I32,
) -> tuple[npt.NDArray[np.uint64], I32]:
    """Return a table of the same that is twice as large."""
    more, their_names = np.zeros(2 * len(keys), np.uint64), np.zeros(2 * len(keys), np.int32)
    for i in range(len(keys)):
        if keys[i] != np.uint64(0):
            at = _place_of(more, keys[i])
            more[at], their_names[at] = keys[i], names[i]
    return more, their_names


@kernel
def deal(
    views: Views,
    places: I64,  # (listed,) minibatch · 2³² + row in it, of each listed sample; −1: in none
    bounds: I32,  # (minibatches + 1, 441) out: those of site s in minibatch b are bounds[b, s] … bounds[b + 1, s] − 1
    rows: I32,  # (entries,) out: their rows in the minibatch
    kinds: I32,  # (entries,) out: their views
) -> None:
    """Deal the entries of each site to the minibatches of a pass; views stay in order."""
    for site in range(views.first, views.last):
        begin, end = views.site_bounds[site], views.site_bounds[site + 1]
        for b in range(len(bounds)):
            bounds[b, site] = 0
        for k in range(begin, end):
            place = places[views.samples[k]]
            if place >= 0:
                bounds[(place >> 32) + 1, site] += 1
        bounds[0, site] = begin
        for b in range(1, len(bounds)):
            bounds[b, site] += bounds[b - 1, site]
        # Each minibatch's bound moves on to the next one's while it gets its entries: afterwards all are one too far.
        for k in range(begin, end):
            place = places[views.samples[k]]
            if place >= 0:
                at = bounds[place >> 32, site]
                bounds[place >> 32, site] += 1
                rows[at], kinds[at] = place & 0xFFFFFFFF, views.kinds[k]
        for b in range(len(bounds) - 1, 0, -1):
            bounds[b, site] = bounds[b - 1, site]
        bounds[0, site] = begin
