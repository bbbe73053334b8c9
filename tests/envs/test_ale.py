"""What a stranger's bytes can be to ALE, which believes them."""

import numpy as np
import pytest

from fastpong.envs.base import LocalEnvs
from fastpong.errors import EnvError
from tests.support.envs import play_at_random


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (slice(None), 0), (slice(78, 81), 255), (slice(6584, 6586), ord("9")), (slice(7678, 7682), 1), (-1, 6),
    ],
    ids=["all", "length for which ALE takes gigabytes", "place in the noise outside of it", "length of a name",
         "action that there is not"],
)  # fmt: skip
def test_bytes_that_are_no_state_are_refused(place: slice | int, value: int) -> None:
    local = LocalEnvs(range(5, 7), engine="ale")
    local.reset()
    play_at_random(local, 3)
    saved = local.snapshot()
    local.restore(saved)
    saved["rows"][1, place] = value
    with pytest.raises(EnvError, match="ALE refuses the saved state"):
        local.restore(saved)


def test_a_state_fills_its_row_but_for_the_end() -> None:
    """Should a version of ALE need more: make the rows longer."""
    local = LocalEnvs(engine="ale")
    local.reset()
    used = np.flatnonzero(local.arrays["rows"][0])
    assert 7000 < used[-2] < local.arrays["rows"].shape[1] - 64
