"""What a batch of REINFORCE is made of: finished points or games, with their returns."""

from typing import NamedTuple

import numpy as np

from fastpong.arrays import F32, I64
from fastpong.kernels import returns
from fastpong.rollout.buffer import Rollout


class Batch(NamedTuple):
    """Samples to learn from, env by env, and the rows that are used by then."""

    samples: I64  # (m,) indices t · envs + n
    advantages: F32  # (m,)
    ends: I64  # (envs,) row after the last used one


def finished_batch(rollout: Rollout, rows: int, unit: str, gamma: float) -> Batch:
    """Take the finished points (or games) of the first `rows` rows, with returns standardised over each game.

    The rows from `first_unused` on are taken; `unit`, ``point`` or ``game``, is not cut, and what is not finished
    carries over. `gamma` is the discount factor per step.
    """
    arrays, begins = rollout.arrays, rollout.first_unused
    ends = np.zeros_like(begins)
    code = {"point": returns.POINT, "game": returns.GAME}[unit]
    most = returns.finished_rows(arrays.rewards, arrays.ended, begins, rows, code, ends)
    samples, game_ids = np.zeros(most, np.int64), np.zeros(most, np.int64)
    advantages = np.zeros(most, np.float32)
    count = returns.discounted_returns(
        arrays.rewards, arrays.ended, begins, ends, gamma, samples, advantages, game_ids
    )  # fmt: skip
    samples, game_ids, advantages = samples[:count], game_ids[:count], advantages[:count]
    returns.standardise(advantages, game_ids)
    return Batch(samples, advantages, ends)
