"""The entries of a site by groups that have the same view, listed without branches that depend on the views.

How many samples of a minibatch see the same is as good as random: two or three, mostly. A processor that guesses the
end of a loop over them wrong loses some 20 cycles, in which it could have added four rows.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import inlined

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

AT_HAND = 32
"""Groups whose products, or sums, are computed before they are used, a power of 2: with 64 columns they take 8 KB."""


@inlined
def list_groups(
    kinds: I32,
    begin: Any,  # int64, begin < end
    end: Any,
    groups: I64,  # (entries,) out: the views, in order
    heads: I64,  # (entries + 1,) out: where the entries of each begin, and where those of the last end
    members: I64,  # (entries,) out: to which of the groups each entry belongs, modulo AT_HAND
) -> Any:
    """Group the entries begin … end − 1 of a site by view, and return the number of groups."""
    count, last = np.int64(0), end - 1
    heads[0] = begin
    for k in range(begin, last):
        view = np.int64(kinds[k])
        groups[count], heads[count + 1], members[k - begin] = view, k + 1, count & (AT_HAND - 1)
        count += np.int64(view != kinds[k + 1])
    groups[count], heads[count + 1], members[last - begin] = kinds[last], end, count & (AT_HAND - 1)
    return count + 1


@inlined
def list_new(
    groups: I64,
    count: Any,
    marks: I64,  # (views,) in and out
    mark: int,
    new: I64,  # (…,) out, from `known` on: the views that were not marked
    known: Any,
) -> Any:
    """Mark the views of some groups, and return `known` and how many of them are new."""
    for i in range(count):
        v = groups[i]
        new[known] = v
        known += np.int64(marks[v] != mark)
        marks[v] = mark
    return known
