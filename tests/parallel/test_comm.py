"""One process alone as a communicator, shares of envs, and weights that have drifted apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong.errors import RanksError
from fastpong.parallel.comm import Serial, check_same_weights, env_range, normalized
from tests import naive
from tests.support.mpi import run_script


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


def test_normalized_values_have_mean_0_and_deviation_1() -> None:
    values = np.random.default_rng(0).normal(1e3, 5, (30, 7)).astype(np.float32)
    scaled = normalized(values, Serial())
    assert scaled.dtype == np.float32 and scaled.shape == values.shape
    expected = naive.standardise(values.ravel().tolist(), [0] * values.size)
    np.testing.assert_allclose(scaled.ravel(), expected, atol=1e-3)
    np.testing.assert_array_equal(normalized(np.full(5, 3, np.float32), Serial()), 0)  # all equal
    signed = normalized(np.array([3, -4], np.float32), Serial(), centred=False)
    np.testing.assert_allclose(signed, np.array([3, -4]) / np.sqrt(12.5), rtol=1e-6)
    assert len(normalized(np.zeros(0, np.float32), Serial())) == 0


def test_ranks_normalize_over_all_of_them(tmp_path: Path) -> None:
    """One of three has no values at all."""
    done = run_script(
        3, tmp_path,
        "from fastpong.parallel.mpi import connect",
        "comm = connect()",
        "import numpy as np",
        "from fastpong.parallel.comm import Serial, normalized",
        "values = np.random.default_rng(1).normal(2, 3, 50).astype(np.float32)",
        "part = (slice(0, 20), slice(20, 20), slice(20, 50))[comm.rank]",
        "parts = comm.gather(normalized(values[part], comm))",
        "if comm.rank == 0: print(np.abs(np.concatenate(parts) - normalized(values, Serial())).max())",
    )  # fmt: skip
    assert done.returncode == 0 and float(done.stdout) < 1e-6, done.stderr
