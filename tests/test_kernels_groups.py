"""The entries of a site grouped by view, against plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpong.kernels.groups import AT_HAND, list_groups, list_new
from tests import naive

VIEWS = 90
SORTED = st.lists(st.integers(0, VIEWS - 1), min_size=1, max_size=150).map(sorted)


@given(SORTED, st.integers(0, 5), st.integers(0, 5))
def test_entries_are_grouped(kinds: list[int], before: int, after: int) -> None:
    around = np.array([kinds[0]] * before + kinds + [kinds[-1]] * after, np.int32)  # of other minibatches
    begin, end = before, before + len(kinds)
    groups, members = np.full(len(kinds), -7), np.full(len(kinds), -7)
    heads = np.full(len(kinds) + 1, -7)
    count = list_groups(around, begin, end, groups, heads, members)
    wanted_groups, wanted_heads, wanted_members = naive.groups_of(around, begin, end)
    assert groups[:count].tolist() == wanted_groups
    assert heads[: count + 1].tolist() == wanted_heads
    assert members.tolist() == [member % AT_HAND for member in wanted_members]


@given(st.lists(SORTED.map(lambda kinds: sorted(set(kinds))), min_size=1, max_size=4))
def test_each_view_is_new_once(sites: list[list[int]]) -> None:
    marks, new, known = np.zeros(VIEWS, np.int64), np.full(VIEWS + 1, -7), 0
    wanted: list[int] = []
    for groups in sites:
        known = list_new(np.array(groups), len(groups), marks, 3, new, known)
        wanted += [view for view in groups if view not in wanted]
        assert new[:known].tolist() == wanted
    assert np.flatnonzero(marks == 3).tolist() == sorted(wanted)


def test_there_is_room_when_all_views_are_known() -> None:
    everything, marks, new = np.arange(VIEWS), np.zeros(VIEWS, np.int64), np.full(VIEWS + 1, -7)
    assert list_new(everything, VIEWS, marks, 1, new, 0) == VIEWS
    assert list_new(everything, VIEWS, marks, 1, new, VIEWS) == VIEWS  # writes new[VIEWS], which does not count
    assert new[:VIEWS].tolist() == everything.tolist()
