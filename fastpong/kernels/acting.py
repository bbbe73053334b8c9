"""How the convolutional network acts: its channels for a few samples, and the choice of an action."""

import numpy as np

from fastpong.arrays import F32, I64, U8
from fastpong.dense import CELL, GRID
from fastpong.kernels.compile.jit import fused, kernel, new_matrix
from fastpong.kernels.conv import conv_hidden_forward, finish_hidden, prefix_sums, side_rows
from fastpong.kernels.gathers import LENGTH_BITS, add_strip
from fastpong.kernels.losses import outputs
from fastpong.kernels.patches import POSITIONS, cell_of, patch_strip
from fastpong.kernels.sampling import choose, uniform
from fastpong.kernels.structs import Bucket, ExploringStarts, Inputs, Network, Noise, Patches, Workspace
from fastpong.kernels.tiles import CHANNELS

_STRIPS = CELL[1] * (CELL[0] + 1) << LENGTH_BITS
"""By how much strips in one of the four cells of a patch differ from those of the next, for each image."""


@kernel
def forced_steps(
    before: int,  # `forced` of the step before
    begins: bool,  # whether a point begins
    starts: ExploringStarts,
    env: int,  # global index
    step: int,  # steps since the run began
) -> int:
    """Return for how many steps an exploring start still holds the paddle, > 0 up, < 0 down; 0: the policy acts.

    Some points begin with the paddle held toward one of the walls, for 1 … `max_steps` steps (exploring starts: Sutton
    and Barto, "Reinforcement Learning", 2nd edition, section 5.3). Twin: naive.forced_steps.
    """
    if begins:
        draw = uniform(starts.key, env, step) / max(starts.probability, 1e-30)
        left = min(starts.max_steps, 1 + int(abs(2.0 * draw - 1.0) * starts.max_steps)) if draw < 1.0 else 0
        return left if draw < 0.5 else -left
    return before - 1 if before > 0 else before + 1 if before < 0 else 0


@kernel
def patches_of_few(
    inputs: Inputs,
    samples: I64,  # (m,)
    network: Network,
) -> tuple[Patches, F32]:
    """List the patches of some samples, each pair's as one of its own, with channels float32 (pairs, 16).

    Where few envs act few of their patches are alike. To find those takes longer than to compute all of them, if the
    strips of a patch need not be listed: each strip of pixels is added to the channels of its four positions.
    Twin: naive.convolution.
    """
    strips, arrays, envs, frames = inputs.images, inputs.arrays, inputs.envs, inputs.frame_stack
    sums, most = prefix_sums(network.kernel), 0
    for sample in samples:
        for f in range(min(arrays.steps_since_reset[sample] + 1, frames)):
            most += 4 * arrays.lengths[sample - f * envs]
    channels, positions = new_matrix(most + 1, np.int64(CHANNELS)), np.empty(most + 1, np.int32)
    where, offsets = np.full(POSITIONS, -1, np.int64), np.zeros(POSITIONS + 1, np.int32)
    ends, pairs = np.zeros(len(samples) + 1, np.int64), np.int64(0)
    for m in range(len(samples)):
        begin = pairs
        for f in range(min(arrays.steps_since_reset[samples[m]] + 1, frames)):
            sample = samples[m] - f * envs
            for k in range(arrays.offsets[sample], arrays.offsets[sample] + arrays.lengths[sample]):
                cell, strip = cell_of(strips[k]), patch_strip(strips[k], f * CELL[1])
                for d in range(4):
                    position = cell + (d >> 1) * GRID[1] + (d & 1)
                    # Without a branch, since none could be foreseen.
                    fresh = where[position] < begin
                    at = pairs if fresh else where[position]
                    where[position], positions[pairs] = at, position
                    pairs += fresh
                    add_strip(channels, at, fresh, network.bias, sums, strip + d * frames * _STRIPS)
        for e in range(begin, pairs):
            offsets[positions[e] + 1] += 1
            for c in range(CHANNELS):
                channels[e, c] = max(channels[e, c], np.float32(0.0))
        ends[m + 1] = pairs
    for position in range(POSITIONS):
        offsets[position + 1] += offsets[position]
    patch_ids, sample_ids, starts = np.empty(pairs, np.int32), np.empty(pairs, np.int32), offsets.copy()
    for m in range(len(samples)):
        for e in range(ends[m], ends[m + 1]):
            patch_ids[starts[positions[e]]], sample_ids[starts[positions[e]]] = e, m
            starts[positions[e]] += 1
    # No list of strips: the channels are known.
    return Patches(offsets[:1], positions[:0], np.arange(POSITIONS), offsets, patch_ids, sample_ids), channels


@fused
def act(
    inputs: Inputs,  # forced, actions, log_probs and values: out, for the present steps
    first: int,  # index of env 0's present step
    members: I64,  # (n,) the envs that act
    network: Network,  # of actions + 1 outputs
    starts: ExploringStarts,
    noise: Noise,
) -> U8:
    """Choose an action for each of some envs, and return them: uint8 (n,).

    One kernel for all of it: between two steps the emulators push all code out of the caches, and each call costs about
    10 µs then. Twin: naive.network_outputs.
    """
    samples, chosen, arrays = first + members, np.empty(len(members), np.uint8), inputs.arrays
    stamp = np.int64(1)
    totals = np.zeros((1, len(samples), network.w1.shape[1]), np.int32)
    patches, channels = patches_of_few(inputs, samples, network)
    begins, ends, place = patches.offsets[:-1], patches.offsets[1:], np.int64(0)
    bucket = Bucket(begins, ends, patches.sample_ids, patches.patch_ids, int(place), int(place + POSITIONS))
    # All patches are stamped: their channels are known.
    stamps = np.ones(len(patches.patch_ids), np.int64)
    work = Workspace(stamps, stamps, channels, channels, channels)
    conv_hidden_forward(patches, bucket, network, channels, work, stamp, totals[0])
    rows, owners = side_rows(inputs, samples)
    hidden = finish_hidden(totals, 0, len(samples), rows, owners, network.w1)
    probs, logs = np.empty(inputs.num_actions, np.float32), np.empty(inputs.num_actions, np.float32)
    for m in range(len(samples)):
        sample, before = samples[m], samples[m] - inputs.envs  # before the first row: not used
        begins = arrays.steps_since_reset[sample] == 0 or arrays.rewards[before] != 0
        forced = forced_steps(int(arrays.forced[before]), begins, starts, noise.env_offset + members[m], noise.step)
        arrays.forced[sample] = forced
        arrays.values[sample] = outputs(hidden[m], network.w2, probs, logs)
        if forced != 0:
            action = 0 if forced > 0 else 1
            arrays.log_probs[sample] = np.float32(0.0)
        else:
            action = choose(probs, noise, members[m])
            arrays.log_probs[sample] = logs[action]
        arrays.actions[sample] = chosen[m] = action
    return chosen
