"""Matrices and vectors that begin at a cache line, and the buffers of a learner that have to."""

import pytest

from fastpong.config import make_config
from fastpong.kernels import aligned
from fastpong.policy import make_policy
from fastpong.ppo import PPO


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 5), (37, 64), (441, 16)])
def test_a_matrix_is_whole_and_begins_at_a_line(rows: int, columns: int) -> None:
    others = [aligned.new_matrix(rows, columns) for _ in range(9)]  # freed memory would come back in the same place
    for matrix in others:
        matrix[:] = 7.0
        assert matrix.shape == (rows, columns)
        assert matrix.flags.c_contiguous
        assert matrix.ctypes.data % aligned.LINE == 0


@pytest.mark.parametrize("size", [1, 15, 16, 17, 500_000])
def test_zeros_are_zeros_and_begin_at_a_line(size: int) -> None:
    others = [aligned.zeros(size) for _ in range(9)]
    for array in others:
        assert array.shape == (size,)
        assert not array.any()
        assert array.ctypes.data % aligned.LINE == 0


def test_the_rows_that_the_tiles_read_begin_at_lines() -> None:
    config = make_config("fast", {"envs": 2})
    learner = PPO(config, make_policy(config))
    adam = learner.adam
    for network in (adam.network, *adam.gradients):
        for name in ("kernel", "bias", "w1"):
            assert getattr(network, name).ctypes.data % aligned.LINE == 0, name
    for array in (adam.mean, adam.square):
        assert array.ctypes.data % aligned.LINE == 0
    learner.close()
