"""A pass over a batch: all its minibatches, on two threads that meet in compiled code, or on one.

A minibatch is worked on in two halves, on any machine: so the sums are the same on all. What belongs to sites is halved
by sites: each half adds up what its sites contribute to the hidden units of all samples, and later the gradient of its
sites' weights, of which the other half knows nothing; so these stay in the caches of one core. In between, outputs and
loss, are halved by samples.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastpong.kernels import convolution
from fastpong.kernels.aligned import new_matrix
from fastpong.kernels.jit import inlined, kernel
from fastpong.kernels.meeting import ALONE, meet
from fastpong.kernels.optimiser import Rates, adam, rates_of
from fastpong.kernels.ppo import Objective, Steps, clipped_gradient
from fastpong.kernels.records import Network, Optimiser, Pass
from fastpong.kernels.sites import Views, deal
from fastpong.kernels.tiles import CHANNELS
from fastpong.kernels.value import value_gradient

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

MEETINGS = 4
"""How often the threads meet in a minibatch."""


class _Room(NamedTuple):
    """What one half needs: see `convolution.add_sites` and `sites_gradient`."""

    marks: I64
    acts: F32
    grad_acts: F32
    grad_sums: F32


@inlined
def _room_of(
    views: Views,
    weights: Network,
) -> _Room:
    count = len(views.bounds) - 1
    grad_sums = convolution.prefix_sums(weights.kernel)
    grad_sums[:] = np.float32(0.0)
    acts, grads = new_matrix(count, np.int64(CHANNELS)), new_matrix(count, np.int64(CHANNELS))
    return _Room(np.zeros(count, np.int64), acts, grads, grad_sums)


@inlined
def _contribute(
    half: int,
    b: int,
    room: _Room,
    views: Views,
    over: Pass,
    weights: Network,
) -> None:
    """Compute what the sites of a half contribute to the hidden units of minibatch b."""
    hidden = over.hidden if half == 0 else over.others
    hidden[: over.ends[b + 1] - over.ends[b]] = np.float32(0.0)
    convolution.add_sites(
        views, over.bounds[b], over.bounds[b + 1], over.rows[half], over.kinds[half],
        convolution.prefix_sums(weights.kernel), weights.bias, weights.w1, room.marks, 2 * b + 1, room.acts, hidden,
    )  # fmt: skip


@inlined
def _complete(
    part: slice,  # which rows of the minibatch
    samples: I64,  # (m,) of these
    ages: I64,
    actions: U8,
    games: int,
    past: int,
    choices: int,
    over: Pass,
    w1: F32,
) -> F32:
    """Return the hidden units of some samples of a minibatch."""
    hidden, others = over.hidden[part], over.others[part]
    for m in range(len(hidden)):
        unit, other = hidden[m], others[m]
        for j in range(len(unit)):
            unit[j] += other[j]
    convolution.add_facts(ages, actions, games, samples, past, choices, w1, hidden)
    return hidden


@inlined
def _go_back(
    half: int,
    b: int,
    room: _Room,
    views: Views,
    over: Pass,
    weights: Network,
    gradients: Any,  # of both halves, see half_of_pass
    touched: Flags,
    optimiser: Optimiser,
    rates: Rates,
) -> None:
    """Carry the gradient of the hidden units of minibatch b back to the sites of a half."""
    own = gradients[half]
    convolution.sites_gradient(
        views, over.bounds[b], over.bounds[b + 1], over.rows[half], over.kinds[half], weights.w1,
        over.grad_hidden, room.marks, 2 * b + 2, room.acts, room.grad_acts, room.grad_sums, own.bias,
        gradients[0].w1, touched, optimiser.apply, optimiser.mean.w1, optimiser.square.w1, rates,
    )  # fmt: skip
    convolution.prefix_gradient(room.grad_sums, own.kernel)


@kernel
def _flat(
    part: int,  # 0 … 3: kernel, bias, facts, w2
    arrays: Network,
) -> F32:
    if part == 0:
        return arrays.kernel.reshape(-1)
    if part == 1:
        return arrays.bias
    return arrays.w1.reshape(-1)[convolution.FACTS * arrays.w1.shape[1] :] if part == 2 else arrays.w2.reshape(-1)


@inlined
def _change_the_rest(
    half: int,
    weights: Network,
    gradients: Any,
    optimiser: Optimiser,
    rates: Rates,
) -> None:
    """Change a half of the weights that belong to no site, whose gradient both halves have added to."""
    for part in range(2 * half, 2 * half + 2):
        gradient, other = _flat(part, gradients[0]), _flat(part, gradients[1])
        for i in range(len(other)):
            gradient[i] += other[i]
            other[i] = np.float32(0.0)
        adam(_flat(part, weights), gradient, _flat(part, optimiser.mean), _flat(part, optimiser.square), rates)


@kernel
def half_of_pass(
    which: int,  # 0 or 1: this half, and this thread; ALONE: both halves
    place: I64,  # see meet; 0 at the beginning
    begin: int,  # the minibatches begin … end − 1 of the pass
    end: int,
    views: Any,  # Views of the batch, of either half of the sites
    over: Pass,
    steps: Steps,
    games: int,
    past: int,  # how many of the last actions are seen
    objective: Objective,
    weights: Network,  # in and out, if `optimiser.apply`
    gradients: Any,  # two Networks, all 0; out: what either half added up, or 0 again; sites' are in the first
    touched: Flags,  # (441,) False; out: True for the sites that have a gradient
    statistics: npt.NDArray[np.float64],  # (2, 4) in and out: of each half of the samples, see ppo.clipped_gradient
    optimiser: Optimiser,
) -> bool:
    """Take one half's part in some minibatches of PPO, or both halves'; False if the other half's thread has gone."""
    rooms = (_room_of(views[0], weights), _room_of(views[1], weights))
    halves = range(2) if which == ALONE else range(which, which + 1)
    choices = weights.w2.shape[0] - 1
    if begin == 0:
        for half in halves:
            deal(views[half], over.places, over.bounds, over.rows[half], over.kinds[half])
    for b in range(begin, end):
        meeting, step = MEETINGS * (b - begin), optimiser.updates + b - begin + 1
        rates = rates_of(optimiser.learning_rate, optimiser.beta_1, optimiser.beta_2, optimiser.epsilon, step)
        for half in halves:
            _contribute(half, b, rooms[half], views[half], over, weights)
        if not meet(place, which, meeting + 1):
            return False
        samples = over.samples[over.ends[b] : over.ends[b + 1]]
        middle = (len(samples) + 1) // 2
        for half in halves:
            part = slice(0, middle) if half == 0 else slice(middle, len(samples))
            hidden = _complete(part, samples[part], steps.ages, steps.actions, games, past, choices, over, weights.w1)
            clipped_gradient(
                hidden, samples[part], steps, weights.w2, objective, over.scales[b], gradients[half].w2,
                over.grad_hidden[part], statistics[half],
            )  # fmt: skip
            convolution.facts_gradient(
                steps.ages, steps.actions, games, samples[part], past, choices, over.grad_hidden[part],
                gradients[half].w1,
            )  # fmt: skip
        if not meet(place, which, meeting + 2):
            return False
        for half in halves:
            _go_back(half, b, rooms[half], views[half], over, weights, gradients, touched, optimiser, rates)
        if not meet(place, which, meeting + 3):
            return False
        if optimiser.apply:
            for half in halves:
                _change_the_rest(half, weights, gradients, optimiser, rates)
        if not meet(place, which, meeting + 4):
            return False
    return True


@kernel
def half_of_value_pass(
    which: int,  # as for half_of_pass, here and in the next five
    place: I64,
    begin: int,
    end: int,
    views: Any,
    over: Pass,
    ages: I64,  # (rows · games,)
    actions: U8,  # (rows · games,)
    targets: F32,  # (listed,) what the values should have been
    games: int,
    past: int,
    choices: int,
    weights: Network,  # as for half_of_pass, here and in the next two
    gradients: Any,
    touched: Flags,
    optimiser: Optimiser,
    decay: float,  # of the running mean of all weights
    flat: F32,  # (any,) all weights
    means: F32,  # (any,) in and out: this mean
) -> bool:
    """Take one half's part in some of the critic's minibatches, or both; False if the other half's thread has gone."""
    rooms = (_room_of(views[0], weights), _room_of(views[1], weights))
    halves = range(2) if which == ALONE else range(which, which + 1)
    if begin == 0:
        for half in halves:
            deal(views[half], over.places, over.bounds, over.rows[half], over.kinds[half])
    for b in range(begin, end):
        meeting, step = MEETINGS * (b - begin), optimiser.updates + b - begin + 1
        rates = rates_of(optimiser.learning_rate, optimiser.beta_1, optimiser.beta_2, optimiser.epsilon, step)
        for half in halves:
            _contribute(half, b, rooms[half], views[half], over, weights)
        if not meet(place, which, meeting + 1):
            return False
        samples, picks = over.samples[over.ends[b] : over.ends[b + 1]], over.picks[over.ends[b] : over.ends[b + 1]]
        middle = (len(samples) + 1) // 2
        for half in halves:
            part = slice(0, middle) if half == 0 else slice(middle, len(samples))
            hidden = _complete(part, samples[part], ages, actions, games, past, choices, over, weights.w1)
            value_gradient(
                hidden, picks[part], targets, weights.w2, over.scales[b], gradients[half].w2, over.grad_hidden[part]
            )
            convolution.facts_gradient(
                ages, actions, games, samples[part], past, choices, over.grad_hidden[part], gradients[half].w1
            )
        if not meet(place, which, meeting + 2):
            return False
        for half in halves:
            _go_back(half, b, rooms[half], views[half], over, weights, gradients, touched, optimiser, rates)
        if not meet(place, which, meeting + 3):
            return False
        if optimiser.apply:
            for half in halves:
                _change_the_rest(half, weights, gradients, optimiser, rates)
        if not meet(place, which, meeting + 4):
            return False
        if optimiser.apply:
            # No weight changes before the next meeting but one. At first the mean is that of all weights so far.
            share, middle = np.float32(max(1.0 - decay, 1.0 / step)), len(means) // 2
            for half in halves:
                own = slice(0, middle) if half == 0 else slice(middle, len(means))
                mean, now = means[own], flat[own]
                for i in range(len(mean)):
                    mean[i] += share * (now[i] - mean[i])
    return True
