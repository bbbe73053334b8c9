"""What came of a step: taken over from the games, and counted.

A few lines of NumPy would do, but between two steps the emulators push all code out of the caches: one small kernel
takes 10 µs then, and each call of NumPy as much.
"""

import numpy as np
import numpy.typing as npt

from fastpong.kernels.jit import kernel

I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]


@kernel
def take_over(
    slots: I64,  # (n,) where each game stands
    games: I64,  # (n,) the games
    rewards: I8,  # (slots,) see fastpong.pong.space_of, here and in the next three
    ended: I8,
    practising: I8,
    planned: I8,
    rewards_before: I8,  # (games,) out: those of the step before, here and in the next
    ended_before: I8,
    practising_now: I8,  # (games,) out: of the present screens, here and in the next
    planned_now: I8,
) -> None:
    """Put what is known of some games in slots to where the rollout has it."""
    for i in range(len(games)):
        slot, game = slots[i], games[i]
        rewards_before[game], ended_before[game] = rewards[slot], ended[slot]
        practising_now[game], planned_now[game] = practising[slot], planned[slot]


@kernel
def count_step(
    rewards: I8,  # (games,)
    ended: I8,  # (games,) 1: the step ended a game
    practised: I8,  # (games,) not 0: the step belongs to no game
    score: I64,  # (games,) in and out: points won minus lost in the present game
    length: I64,  # (games,) in and out: steps of it
    over: I64,  # (games,) out: the games that have ended, ascending
) -> tuple[int, int, int]:
    """Count a step of all games; return the points won, the points lost, and how many games have ended."""
    won = lost = count = 0
    for game in range(len(rewards)):
        if practised[game] == 0:
            points = int(rewards[game])
            length[game] += 1
            score[game] += points
            won += points if points > 0 else 0
            lost -= points if points < 0 else 0
        over[count] = game
        count += ended[game] == 1
    return won, lost, count
