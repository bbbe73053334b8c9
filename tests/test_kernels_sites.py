"""What sites see, against sets of pixels: on real screens, and on pictures for whose views the table has to grow."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fastpong.kernels import images, sites
from tests import naive
from tests.test_kernels_ppo import Steps, listed

SAMPLES = np.array([12, 1, 8, 9, 13, 0, 2, 11, 5])


def drawings(count: int) -> tuple[tuple[Any, ...], list[npt.NDArray[np.bool_]]]:
    """Pictures of random bars, and their runs: what `list_views` takes, for one game of three frames."""
    rng, pictures = np.random.default_rng(2), []
    runs, starts, lengths = np.zeros(count * 400, np.int32), np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = 0
    for t in range(count):
        screen = np.full((210, 160), 34, np.uint8)
        for row, column, length in zip(
            rng.integers(0, 160, 30), rng.integers(0, 80, 30), rng.integers(1, 30, 30), strict=True
        ):
            screen[34 + row : min(194, 34 + row + length), 2 * column] = 92
        starts[t], at = at, images.find_runs(images.as_words(screen[None])[0], runs, at)
        lengths[t] = at - starts[t]
        pictures.append(screen[34:194, ::2] == 92)
    return (runs, starts, lengths, np.arange(count), 1, np.arange(count), 3), pictures


def pixels_of(views: sites.Views, v: int) -> Iterator[tuple[int, int, int]]:
    """The pixels (frame, row, column) of a view, from its pieces; three frames."""
    for piece in views.pieces[views.bounds[v] : views.bounds[v + 1]].tolist():
        above, length = piece >> 3, (piece & 7) + 1
        rest, row = divmod(above, 9)
        rest, column = divmod(rest, 4)
        quarter, frame = divmod(rest, 3)
        for y in range(row, row + length):
            # The first of the four sites of a cell has it at its lower right.
            yield frame, y + 8 * (1 - quarter // 2), column + 4 * (1 - quarter % 2)


def check(views: sites.Views, seen: Sequence[dict[int, frozenset[tuple[int, int, int]]]]) -> None:
    """Compare all of `views` with what the samples see by the naive twin."""
    found: set[tuple[int, int]] = set()
    known: dict[int, frozenset[tuple[int, int, int]]] = {}
    for site in range(sites.SITES):
        begin, end = views.site_bounds[site : site + 2]
        kinds, owners = views.kinds[begin:end].tolist(), views.samples[begin:end].tolist()
        assert list(zip(kinds, owners, strict=True)) == sorted(zip(kinds, owners, strict=True))
        for v, m in zip(kinds, owners, strict=True):
            found.add((m, site))
            assert known.setdefault(v, seen[m][site]) == seen[m][site]
    assert found == {(m, site) for m, those in enumerate(seen) for site in those}
    assert len(found) == len(views.kinds)
    assert sorted(known) == list(range(len(views.bounds) - 1))
    assert len(set(known.values())) == len(known)
    for v, pixels in known.items():
        listed_pixels = list(pixels_of(views, v))
        assert len(listed_pixels) == len(pixels) and set(listed_pixels) == pixels
    before = int(views.site_bounds[views.middle])
    assert 2 * before <= len(views.kinds) < 2 * int(views.site_bounds[min(views.middle + 1, sites.SITES)]) + 1


def test_views_of_real_screens(real_screens: npt.NDArray[np.uint8]) -> None:
    steps = Steps(real_screens)
    check(listed(steps, SAMPLES), [naive.views_of(steps.seen(s)[0]) for s in SAMPLES.tolist()])


def test_views_of_pictures_that_are_all_different() -> None:
    arguments, pictures = drawings(12)
    views = sites.list_views(*arguments)
    assert len(views.bounds) > 2048  # the table has grown
    check(views, [naive.views_of(pictures[t : max(0, t - 2) - 1 if t > 2 else None : -1]) for t in range(12)])


def test_no_samples_and_empty_screens_have_no_views() -> None:
    none = np.zeros(0, np.int64)
    for samples in none, np.zeros(3, np.int64):
        views = sites.list_views(
            np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), 1, samples, 3
        )
        assert len(views.kinds) == len(views.pieces) == 0 and views.bounds.tolist() == [0]
        assert not views.site_bounds.any()


@pytest.mark.parametrize("halves", [False, True])
def test_entries_are_dealt_to_minibatches(real_screens: npt.NDArray[np.uint8], halves: bool) -> None:
    views = listed(Steps(real_screens), SAMPLES)
    minibatches = [[7, 0, 3], [], [8, 2], [1, 5]]  # 4 and 6 are in none
    places = np.full(len(SAMPLES), -1)
    for b, part in enumerate(minibatches):
        places[part] = b << 32 | np.arange(len(part))
    bounds = np.full((5, sites.SITES), 77, np.int32)
    rows, kinds = np.full(len(views.kinds), -1, np.int32), np.full(len(views.kinds), -1, np.int32)
    for first, last in [(0, views.middle), (views.middle, sites.SITES)] if halves else [(0, sites.SITES)]:
        sites.deal(views, first, last, places, bounds, rows, kinds)
    for site in range(sites.SITES):
        entries = range(views.site_bounds[site], views.site_bounds[site + 1])
        for b, part in enumerate(minibatches):
            mine = [(int(views.kinds[k]), part.index(views.samples[k])) for k in entries if views.samples[k] in part]
            dealt = slice(bounds[b, site], bounds[b + 1, site])
            assert list(zip(kinds[dealt].tolist(), rows[dealt].tolist(), strict=True)) == mine
