"""Rollouts of real screens with outcomes that a test decides."""

from typing import Any

import numpy as np

from fastpong.arrays import I8, U8
from fastpong.rollout.buffer import Rollout
from tests.support.kernels import observation

Course = tuple[I8, I8]
"""What each step of two envs brought: rewards and ends of games, int8 (steps, 2)."""


def course_of_points() -> Course:
    """290 steps of two envs with some points and the end of a game each, which no other reward or end is near."""
    rewards, ended = np.zeros((290, 2), np.int8), np.zeros((290, 2), np.int8)
    rewards[[20, 60, 150, 288], 0] = [1, -1, -1, 1]
    rewards[[90, 270], 1] = -1
    ended[150, 0] = ended[90, 1] = 1
    return rewards, ended


def fill(rollout: Rollout, screens: U8, course: Course) -> None:
    """Add a row for each step, after a reset; env 1 shows the screens backwards."""
    whole, last, (rewards, ended) = observation(screens), len(screens) - 1, course
    for t in range(len(rewards)):
        row = rollout.new_row()
        shown = {0: t, 1: last - t}  # row of the observation
        before = np.zeros((2, len(screens)), np.int8)
        for env, at in shown.items():
            before[:, at] = (rewards[t - 1, env], ended[t - 1, env]) if t else (0, 1)
        seen = whole._replace(rewards=before[0], ended=before[1])
        for env in (1, 0):  # the order of groups is not the order of envs
            rollout.record(row, seen, np.array([shown[env]]), np.array([env]))
        rollout.arrays.actions[row] = t % 2
    # The outcome of the last step, which the next one would have brought.
    rollout.arrays.rewards[row], rollout.arrays.ended[row] = rewards[-1], ended[-1]


def images_of(rollout: Rollout, row: int) -> list[list[Any]]:
    """Each env's image in a row, as the numbers in the list of all images."""
    offsets, lengths = rollout.arrays.offsets[row].tolist(), rollout.arrays.lengths[row].tolist()
    images = rollout.inputs.images
    return [images[begin : begin + count].tolist() for begin, count in zip(offsets, lengths, strict=True)]
