"""What sites see, against sets of pixels: on real screens, and on pictures for whose views the table has to grow."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels import images, sites
from tests import naive
from tests.test_kernels_ppo import Steps, arguments_of, list_views, listed

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


def check_half(views: sites.Views, seen: Sequence[dict[int, frozenset[tuple[int, int, int]]]]) -> None:
    """Compare all of `views` with what its sites see in the samples by the naive twin."""
    found: set[tuple[int, int]] = set()
    known: dict[int, frozenset[tuple[int, int, int]]] = {}
    for site in range(sites.SITES):
        begin, end = views.site_bounds[site : site + 2]
        kinds, owners = views.kinds[begin:end].tolist(), views.samples[begin:end].tolist()
        assert list(zip(kinds, owners, strict=True)) == sorted(zip(kinds, owners, strict=True))
        for v, m in zip(kinds, owners, strict=True):
            found.add((m, site))
            assert known.setdefault(v, seen[m][site]) == seen[m][site]
    assert found == {(m, s) for m, those in enumerate(seen) for s in those if views.first <= s < views.last}
    assert len(found) == len(views.kinds)
    assert sorted(known) == list(range(len(views.bounds) - 1))
    assert len(set(known.values())) == len(known)
    for v, pixels in known.items():
        listed_pixels = list(pixels_of(views, v))
        assert len(listed_pixels) == len(pixels) and set(listed_pixels) == pixels


def check(arguments: tuple[Any, ...], seen: Sequence[dict[int, frozenset[tuple[int, int, int]]]]) -> list[sites.Views]:
    """Compare the views of all sites, and of two halves of them."""
    runs, starts, lengths, _, _, samples, _ = arguments
    middle = sites.middle_of(runs, starts, lengths, samples)
    found = []
    for first, last in (0, sites.SITES), (0, middle), (middle, sites.SITES), (middle, middle):
        found.append(list_views(*arguments, first, last))
        check_half(found[-1], seen)
    return found


def test_views_of_real_screens(real_screens: npt.NDArray[np.uint8]) -> None:
    steps = Steps(real_screens)
    whole, above, below, none = check(arguments_of(steps, SAMPLES), [naive.views_of(steps.seen(s)[0]) for s in SAMPLES])
    assert 0.3 * len(whole.kinds) < len(above.kinds) < 0.7 * len(whole.kinds)
    assert len(above.kinds) + len(below.kinds) == len(whole.kinds) and not len(none.kinds)


def test_views_of_pictures_that_are_all_different() -> None:
    arguments, pictures = drawings(12)
    seen = [naive.views_of(pictures[t : max(0, t - 2) - 1 if t > 2 else None : -1]) for t in range(12)]
    assert len(check(arguments, seen)[0].bounds) > 2048  # there is more than there was room for at first


def test_no_samples_and_empty_screens_have_no_views() -> None:
    none, one = np.zeros(0, np.int64), np.zeros(1, np.int64)
    for samples in none, np.zeros(3, np.int64):
        views = sites.list_views(np.zeros(0, np.int32), one, one, one, 1, samples, 3, 0, sites.SITES)
        assert len(views.kinds) == len(views.pieces) == 0 and views.bounds.tolist() == [0]
        assert not views.site_bounds.any()
        assert sites.middle_of(np.zeros(0, np.int32), one, one, samples) == sites.SITES


def test_entries_are_dealt_to_minibatches(real_screens: npt.NDArray[np.uint8]) -> None:
    halves = listed(Steps(real_screens), SAMPLES)
    minibatches = [[7, 0, 3], [], [8, 2], [1, 5]]  # 4 and 6 are in none
    places = np.full(len(SAMPLES), -1)
    for b, part in enumerate(minibatches):
        places[part] = b << 32 | np.arange(len(part))
    bounds = np.full((5, sites.SITES), 77, np.int32)
    for views in halves:
        rows, kinds = np.full(len(views.kinds), -1, np.int32), np.full(len(views.kinds), -1, np.int32)
        sites.deal(views, places, bounds, rows, kinds)
        for site in range(views.first, views.last):
            entries = range(views.site_bounds[site], views.site_bounds[site + 1])
            for b, part in enumerate(minibatches):
                mine = [
                    (int(views.kinds[k]), part.index(views.samples[k])) for k in entries if views.samples[k] in part
                ]
                dealt = slice(bounds[b, site], bounds[b + 1, site])
                assert list(zip(kinds[dealt].tolist(), rows[dealt].tolist(), strict=True)) == mine
