"""How the convolutional network acts: its channels for a few samples, its outputs, and a draw.

The outputs are linear in the hidden units, with a bias: a logit per action, then the value of the state.
"""

import math

import numpy as np
import numpy.typing as npt

from fastpong.kernels import convolution
from fastpong.kernels.aligned import new_matrix
from fastpong.kernels.gathers import LENGTH_BITS, add_difference
from fastpong.kernels.jit import kernel, reassociated
from fastpong.kernels.noise import choose, uniform
from fastpong.kernels.records import Network, Rows
from fastpong.kernels.sites import CELL, GRID, SITES, Views, cell_of, piece_of
from fastpong.kernels.tiles import CHANNELS

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_PIECES = CELL[1] * (CELL[0] + 1) << LENGTH_BITS
"""By how much pieces of one of the four cells of a site differ from those of the next, a frame."""


@kernel
def hold_start(
    before: int,  # `held` of the step before
    begins: bool,  # whether a point begins
    practising: bool,  # whether the step belongs to a practice attempt
    key: int,  # uint64 key of this noise
    game: int,
    step: int,  # steps since the run began
    share: float,  # of points that begin held
    longest: int,  # steps for which one may be held
) -> int:
    """Return for how many steps the paddle of a game is still held, > 0 upwards, < 0 downwards; 0: the agent plays.

    Some points begin with the paddle held toward one of the walls, for 1 … `longest` steps. These are exploring starts
    (Sutton and Barto, "Reinforcement Learning", 2nd edition, section 5.3). Practice attempts begin amid a point, and
    are played from there.
    """
    if practising:
        return 0
    if begins:
        draw = uniform(key, game, step) / max(share, 1e-30)
        left = min(longest, 1 + int(abs(2.0 * draw - 1.0) * longest)) if draw < 1.0 else 0
        return left if draw < 0.5 else -left
    return before - 1 if before > 0 else before + 1 if before < 0 else 0


@reassociated
def outputs(
    hidden: F32,  # (hidden,)
    w2: F32,  # (actions + 1, hidden + 1): logits and the value; the last column is the bias
    probs: F32,  # (actions,) out
    logs: F32,  # (actions,) out
) -> float:
    """Compute the probabilities of the actions and their logarithms, and return the value."""
    units, actions = len(hidden), len(probs)
    value = top = np.float32(0.0)
    for a in range(actions + 1):
        row = w2[a]
        total = row[units]
        for j in range(units):
            total += row[j] * hidden[j]
        if a == actions:
            value = total
        else:
            logs[a] = total
            top = total if a == 0 else max(top, total)
    mass = np.float32(0.0)
    for a in range(actions):
        probs[a] = math.exp(logs[a] - top)
        mass += probs[a]
    shift = top + np.float32(math.log(mass))
    for a in range(actions):
        probs[a] /= mass
        logs[a] -= shift
    return float(value)


@kernel
def see_samples(
    runs: I32,  # as for `act`, here and in the next seven
    starts: I64,
    lengths: I64,
    ages: I64,
    games: int,
    samples: I64,  # (m,) as indices into starts, lengths and ages
    weights: F32,
    bias: F32,
) -> tuple[Views, F32]:
    """Compute what sites see in some samples: every entry is a view of its own, with channels float32 (entries, 16).

    Where few games act few of their views are alike. To find those takes longer than to compute all of them, if the
    pieces of a view need not be listed: each run of pixels is added to the channels of the four sites that see it.
    """
    frames = weights.shape[0]
    sums, most = convolution.prefix_sums(weights), 0
    for sample in samples:
        for f in range(min(ages[sample] + 1, frames)):
            most += 4 * lengths[sample - f * games]
    acts, sites = new_matrix(most + 1, np.int64(CHANNELS)), np.empty(most + 1, np.int32)
    where, site_bounds = np.full(SITES, -1, np.int64), np.zeros(SITES + 1, np.int32)
    ends, entries = np.zeros(len(samples) + 1, np.int64), np.int64(0)
    for m in range(len(samples)):
        begin = entries
        for f in range(min(ages[samples[m]] + 1, frames)):
            sample = samples[m] - f * games
            for k in range(starts[sample], starts[sample] + lengths[sample]):
                cell, piece = cell_of(runs[k]), piece_of(runs[k], f * CELL[1])
                for d in range(4):
                    site = cell + (d >> 1) * GRID[1] + (d & 1)
                    # Without a branch, since none could be foreseen.
                    fresh = where[site] < begin
                    at = entries if fresh else where[site]
                    where[site], sites[entries] = at, site
                    entries += fresh
                    add_difference(acts, at, fresh, bias, sums, piece + d * frames * _PIECES)
        for e in range(begin, entries):
            site_bounds[sites[e] + 1] += 1
            for c in range(CHANNELS):
                acts[e, c] = max(acts[e, c], np.float32(0.0))
        ends[m + 1] = entries
    for site in range(SITES):
        site_bounds[site + 1] += site_bounds[site]
    kinds, owners, places = np.empty(entries, np.int32), np.empty(entries, np.int32), site_bounds.copy()
    for m in range(len(samples)):
        for e in range(ends[m], ends[m + 1]):
            kinds[places[sites[e]]], owners[places[sites[e]]] = e, m
            places[sites[e]] += 1
    # No list of pieces: the channels are known.
    first, last = np.int64(0), np.int64(SITES)  # Numba compiles once more for numbers that it knows
    return Views(site_bounds[:1], sites[:0], site_bounds, kinds, owners, int(first), int(last)), acts


@reassociated
def act(
    runs: I32,  # (…,) see images.find_runs
    rows: Rows,  # out, for the present steps: held, actions, log_probs and values; the others in
    first: int,  # index of game 0's present step
    members: I64,  # (n,) the games that act
    games: int,  # number of all games
    network: Network,  # of actions + 1 outputs
    past: int,  # how many of the last actions are seen
    start_key: int,  # see hold_start, here and in the next two
    share: float,
    longest: int,
    key: int,  # uint64 key of the action noise
    offset: int,  # global index of game 0 here
    step: int,  # steps since the run began
    greedy: bool,  # take the likeliest action instead of drawing one
) -> U8:
    """Choose an action for each of some games, and return them: uint8 (n,).

    One kernel for all of it, with few arguments: see `fastpong.kernels.outcomes`.
    """
    samples, chosen = first + members, np.empty(len(members), np.uint8)
    choices, marked = network.w2.shape[0] - 1, np.int64(1)
    hidden = new_matrix(len(samples), network.w1.shape[1])
    hidden[:] = np.float32(0.0)
    views, acts = see_samples(
        runs, rows.starts, rows.lengths, rows.ages, games, samples, network.kernel, network.bias
    )  # fmt: skip
    # The channels are known.
    convolution.add_sites(
        views, views.site_bounds[:-1], views.site_bounds[1:], views.samples, views.kinds, acts, network.bias,
        network.w1, np.ones(len(views.kinds), np.int64), marked, acts, hidden,
    )  # fmt: skip
    convolution.add_facts(rows.ages, rows.actions, games, samples, past, choices, network.w1, hidden)
    probs, logs = np.empty(choices, np.float32), np.empty(choices, np.float32)
    for m in range(len(samples)):
        sample, game = samples[m], offset + members[m]
        before = sample - games  # of the first row: unused
        begins = rows.ages[sample] == 0 or rows.rewards[before] != 0
        held = hold_start(
            int(rows.held[before]), begins, rows.practising[sample] != 0, start_key, game, step, share, longest
        )
        rows.held[sample] = held
        rows.values[sample] = outputs(hidden[m], network.w2, probs, logs)
        if held != 0:
            action = 0 if held > 0 else 1
            rows.log_probs[sample] = np.float32(0.0)
        else:
            action = rows.planned[sample] - 1
            if action < 0:
                action = choose(probs, greedy, key, game, step)
            rows.log_probs[sample] = logs[action]
        rows.actions[sample] = chosen[m] = action
    return chosen
