"""One process alone as a communicator, shares of envs, and weights that have drifted apart."""

from typing import Any

import numpy as np
import pytest

from fastpong.errors import RanksError
from fastpong.parallel.comm import Serial, check_same_weights, env_range


def test_shares_are_even_and_complete() -> None:
    for count, size in ((64, 4), (7, 3), (5, 5), (64, 1)):
        shares = [env_range(count, rank, size) for rank in range(size)]
        assert [env for share in shares for env in share] == list(range(count))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_one_process_has_its_own_values() -> None:
    comm, array = Serial(), np.arange(3.0)
    comm.allreduce(array)
    comm.barrier()
    assert array.tolist() == [0.0, 1.0, 2.0]
    assert comm.allgather("a") == comm.gather("a") == ["a"] and comm.broadcast("a") == "a"
    assert (comm.rank, comm.size, comm.local_size) == (0, 1, 1)
    with pytest.raises(SystemExit) as exit:
        comm.abort(3)
    assert exit.value.code == 3


class Pair(Serial):
    """Rank 0 of two, whose other one has different weights."""

    def allgather(self, value: Any) -> list[Any]:
        return [value, value + 1]


def test_drifted_weights_are_noticed() -> None:
    weights = np.ones(3, np.float32)
    check_same_weights(Serial(), weights)
    with pytest.raises(RanksError, match="rank 1 differ from those of rank 0"):
        check_same_weights(Pair(), weights)
