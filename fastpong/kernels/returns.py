"""What each step was worth: discounted returns that restart at every point, and their standardisation."""

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import kernel

I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]

POINT, GAME = 0, 1


@kernel
def finished_rows(
    rewards: I8,  # (rows, games)
    ended: I8,  # (rows, games)
    begins: I64,  # (games,) first row of each game that is not used yet
    rows: int,  # rows filled
    unit: int,  # POINT or GAME: what may not be cut
    ends: I64,  # (games,) out: row after the last finished point or game; = begins if there is none
) -> int:
    """Find out how much of each game is finished; returns an upper bound of the number of samples."""
    total = 0
    for n in range(rewards.shape[1]):
        ends[n] = begins[n]
        for t in range(rows - 1, begins[n] - 1, -1):
            if ended[t, n] or (unit == POINT and rewards[t, n] != 0):
                ends[n] = t + 1
                break
        total += ends[n] - begins[n]
    return total


@kernel
def discounted_returns(
    rewards: I8,  # (rows, games)
    ended: I8,  # (rows, games)
    begins: I64,  # (games,)
    ends: I64,  # (games,)
    gamma: float,  # discount factor per step
    samples: I64,  # (≥ Σ ends − begins,) out: indices t · games + n, game by game, t ascending
    returns: F32,  # (≥ …,) out: return of each sample
    segments: I64,  # (≥ …,) out: number of the game in the batch that each sample belongs to, ascending
) -> int:
    """Compute the returns of finished points, R_t = r_t + γ R_{t+1}, and return how many samples they are.

    The sum restarts at every point.

    Steps of a point that nobody won, because the game was cut off at its frame limit, are left out.
    """
    games = rewards.shape[1]
    count = 0
    segment = -1  # of the present row; rows are visited backwards, so each game first jumps to its last segment
    for n in range(games):
        scored = False
        size = finished_games = 0
        for t in range(ends[n] - 1, begins[n] - 1, -1):
            scored = rewards[t, n] != 0 or (scored and not ended[t, n])
            size += scored
            finished_games += ended[t, n]
        last = segment + finished_games + 1
        segment = last
        scored = False
        running = 0.0
        at = count + size
        for t in range(ends[n] - 1, begins[n] - 1, -1):
            segment -= ended[t, n]
            scored = rewards[t, n] != 0 or (scored and not ended[t, n])
            running = float(rewards[t, n]) if rewards[t, n] != 0 else gamma * running
            if scored:
                at -= 1
                samples[at] = t * games + n
                returns[at] = running
                segments[at] = segment
        segment = last
        count += size
    return count


@kernel
def standardise(
    values: F32,  # (m,) in and out
    segments: I64,  # (m,) ascending; each run of equal numbers is standardised by itself
) -> None:
    """Give each segment mean 0 and, unless all its values are equal, standard deviation 1 (float64 sums)."""
    begin = 0
    while begin < len(values):
        end = begin
        total = 0.0
        while end < len(values) and segments[end] == segments[begin]:
            total += values[end]
            end += 1
        mean = total / (end - begin)
        square = 0.0
        for i in range(begin, end):
            square += (values[i] - mean) ** 2
        deviation = (square / (end - begin)) ** 0.5
        scale = 1.0 / deviation if deviation > 1e-8 else 0.0
        for i in range(begin, end):
            values[i] = (values[i] - mean) * scale
        begin = end
