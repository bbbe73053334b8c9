"""Matrices and vectors that begin at a cache line, and the buffers of a learner that have to."""

import numpy as np
import pytest

from fastpong.config import make_config
from fastpong.kernels.compile import jit
from fastpong.learners.threads import Threads
from fastpong.learners.updater import Updater
from fastpong.parallel.comm import Serial
from fastpong.policy import ConvNet


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 5), (37, 64), (441, 16)])
def test_a_matrix_is_whole_and_begins_at_a_line(rows: int, columns: int) -> None:
    others = [jit.new_matrix(rows, columns) for _ in range(9)]  # freed memory would come back in the same place
    for matrix in others:
        matrix[:] = 7.0
        assert matrix.shape == (rows, columns)
        assert matrix.flags.c_contiguous
        assert matrix.ctypes.data % jit.LINE == 0


@pytest.mark.parametrize("size", [1, 15, 16, 17, 500_000])
def test_zeros_are_zeros_and_begin_at_a_line(size: int) -> None:
    others = [jit.zeros(size) for _ in range(9)]
    for array in others:
        assert array.shape == (size,)
        assert not array.any()
        assert array.ctypes.data % jit.LINE == 0


def test_the_rows_that_the_tiles_read_begin_at_lines() -> None:
    net = ConvNet(make_config("fast", {"num_envs": 2}), np.random.default_rng(0))
    comm = Serial()
    threads = Threads(1)
    updater = Updater(net, comm, threads)
    for network in (net.network, updater._gradient, *updater._averages):
        for name in ("kernel", "bias", "w1"):
            assert getattr(network, name).ctypes.data % jit.LINE == 0, name
    assert all(row.ctypes.data % jit.LINE == 0 for row in updater.rests)
    threads.close()
