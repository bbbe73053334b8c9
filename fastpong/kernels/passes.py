"""A whole pass on two threads that meet in compiled code: to meet in Python costs a tenth to a fifth of it.

Each thread adds up one half of every minibatch, waits for the other, takes Adam's step in its half of the rows, and
waits again. Such a wait is some microseconds, for which a thread that sleeps would not wake up in time; if it takes
longer, the thread gives way to whatever else wants its core.
"""

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import binding
from numba import types
from numba.core import config as numba_config
from numba.extending import intrinsic

from fastpong.kernels.jit import inlined, kernel
from fastpong.kernels.optimiser import adam
from fastpong.kernels.ppo import clipped_gradient, touched_spans
from fastpong.kernels.sites import SITES
from fastpong.kernels.value import value_gradient

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

GONE = np.iinfo(np.int64).max
"""What a thread that will not come says at the meeting place."""

_PLAIN: bool = getattr(numba_config, "DISABLE_JIT")  # noqa: B009  (numba's own module is not typed)
_PATIENCE = 2000  # looks, about 10 µs


def _atomic(load: bool) -> Any:
    """Make ``look(place, which)`` or ``tell(place, which, number)``, for int64 (2, 8): a row is a line of the cache."""

    def address(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, values[0])
        return builder.gep(view.data, [builder.mul(values[1], builder.extract_value(view.shape, 1))])

    def look(typing: Any, place: Any, which: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.load_atomic(address(context, builder, signature, values), "acquire", 8)

        return types.int64(place, types.int64), code

    def tell(typing: Any, place: Any, which: Any, number: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            builder.store_atomic(values[2], address(context, builder, signature, values), "release", 8)
            return context.get_dummy_value()

        return types.void(place, types.int64, types.int64), code

    def plain_look(place: I64, which: int) -> int:
        return int(place[which, 0])

    def plain_tell(place: I64, which: int, number: int) -> None:
        place[which, 0] = number

    if _PLAIN:
        return plain_look if load else plain_tell
    return intrinsic(look if load else tell)


def _make_give_way() -> Any:
    """Return a function that lets others have the core, or does nothing where the system has none for that."""
    if _PLAIN:
        return lambda: time.sleep(0)
    if binding.address_of_symbol("sched_yield"):
        return types.ExternalFunction("sched_yield", types.int32())
    return kernel(lambda: 0)


_look, _tell, _give_way = _atomic(load=True), _atomic(load=False), _make_give_way()


@kernel
def meet(
    place: I64,  # (2, 8) the meeting place: 0, and then in column 0 how often each thread has come
    which: int,  # 0 or 1: this thread
    number: int,  # of this meeting, from 1 on
) -> bool:
    """Wait for the other thread; False if it will not come. What either wrote before, both can read after."""
    _tell(place, which, number)
    looks = 0
    while True:
        other = _look(place, 1 - which)
        if other == GONE:
            return False
        if other >= number:
            return True
        looks += 1
        if looks > _PATIENCE:
            _give_way()


@inlined
def step_of_half(
    which: int,
    place: I64,  # see meet
    number: int,  # of this minibatch in the pass, from 0 on
    touched: Flags,  # (442,) of this half; out: False
    other_touched: Flags,  # (442,) of the other half
    buffers: Any,  # all weights, the gradients of both halves, mean, square, see optimiser.adam
    spans: I64,  # (n + 442, 2) the first n are begins and ends of all weights but w1; the rest is written here
    few: int,  # n
    w1_begin: int,
    hidden: int,  # columns of w1
    learning_rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    updates: int,  # steps of the optimiser before this pass
) -> bool:
    """Take Adam's step in this half of the weights, once both gradients are there; False if the other has gone."""
    if not meet(place, which, 2 * number + 1):
        return False
    count = touched_spans(touched, other_touched, w1_begin, hidden, spans, few)
    middle = (few + count + 1) // 2  # the few are for the first half
    begin, end = (0, middle) if which == 0 else (middle, count)
    adam(
        buffers[0], buffers[1], buffers[2], buffers[3], buffers[4], spans, begin, end,
        learning_rate, beta_1, beta_2, epsilon, updates + number + 1,
    )  # fmt: skip
    if not meet(place, which, 2 * number + 2):
        return False
    for site in range(len(touched)):
        touched[site] = False
    return True


@inlined
def _spans(few: I64) -> I64:
    """Return room for the spans of a minibatch, which begins with these."""
    spans = np.empty((len(few) + SITES + 1, 2), np.int64)
    for i in range(len(few)):  # loops, since expressions of arrays take longer to compile
        spans[i, 0], spans[i, 1] = few[i, 0], few[i, 1]
    return spans


@kernel
def half_of_pass(
    which: int,  # 0 or 1: this half, and this thread
    place: I64,  # see meet; 0 at the beginning
    listed: Any,  # (bounds, sites, run_bounds, moves), see sites.list_sites
    picks: I64,  # (m,) the samples of all minibatches, as indices into what was listed
    ends: I64,  # (minibatches + 1,) those of minibatch b are picks[ends[b] : ends[b + 1]]
    scales: npt.NDArray[np.float64],  # (minibatches,) weight of a sample: 1 / size of its minibatch
    first: int,  # what to add to picks for indices into the arrays of `steps`
    games: int,
    steps: Any,  # (ages, actions, log_probs, advantages, targets, importance, planned), each (rows · games,)
    weights: Any,  # (kernel, bias, w1, w2) as for ppo.clipped_gradient
    gradient: Any,  # the same for this half's gradient, all 0; out: 0 again
    touched: Flags,  # (442,) of this half, False; out: False again
    other_touched: Flags,  # (442,) of the other half
    statistics: npt.NDArray[np.float64],  # (4,) in and out, see ppo.clipped_gradient
    buffers: Any,  # all weights, the gradients of both halves, mean, square, see optimiser.adam
    few: I64,  # (n, 2) begins and ends of all weights but w1
    w1_begin: int,
    past: int,
    clip: float,
    clip_high: float,
    entropy_weight: float,
    value_weight: float,
    learning_rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    updates: int,  # steps of the optimiser before this pass
) -> bool:
    """Take one half's part in a pass over a batch; False if the other half's thread has gone."""
    samples, spans = np.empty(len(picks), np.int64), _spans(few)
    for i in range(len(picks)):
        samples[i] = first + picks[i]
    for b in range(len(ends) - 1):
        middle = (ends[b] + ends[b + 1] + 1) // 2  # the first half has one more if they are odd
        begin, end = (ends[b], middle) if which == 0 else (middle, ends[b + 1])
        part = picks[begin:end]
        clipped_gradient(
            listed[0], listed[1], listed[2], listed[3], part, steps[0], games, steps[1], steps[2], steps[3], steps[4],
            steps[5], steps[6], samples[begin:end], weights[0], weights[1], weights[2], weights[3], past, clip,
            clip_high, entropy_weight, value_weight, scales[b], gradient[0], gradient[1], gradient[2], gradient[3],
            touched, statistics,
        )  # fmt: skip
        if not step_of_half(
            which, place, b, touched, other_touched, buffers, spans, len(few), w1_begin, weights[2].shape[1],
            learning_rate, beta_1, beta_2, epsilon, updates,
        ):  # fmt: skip
            return False
    return True


@kernel
def half_of_value_pass(
    which: int,  # 0 or 1: this half, and this thread
    place: I64,  # see meet; 0 at the beginning
    listed: Any,  # (bounds, sites, run_bounds, moves), see sites.list_sites
    samples: I64,  # (listed,) what was listed, as indices into ages and actions
    picks: I64,  # (m,) the samples of all minibatches, as indices into what was listed
    ends: I64,  # (minibatches + 1,) those of minibatch b are picks[ends[b] : ends[b + 1]]
    scales: npt.NDArray[np.float64],  # (minibatches,) weight of a sample: 1 / size of its minibatch
    games: int,
    ages: I64,  # (rows · games,)
    actions: Any,  # (rows · games,)
    targets: F32,  # (listed,) what the values should have been
    weights: Any,  # (kernel, bias, w1, w2) as for value.value_gradient
    gradient: Any,  # the same for this half's gradient, all 0; out: 0 again
    touched: Flags,  # as for half_of_pass, here and in the next four
    other_touched: Flags,
    buffers: Any,
    few: I64,
    w1_begin: int,
    past: int,
    choices: int,
    learning_rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    updates: int,  # steps of the optimiser before this pass
    decay: float,  # of the running mean of all weights
    means: F32,  # (any,) in and out: this mean
) -> bool:
    """Take one half's part in the critic's pass over its minibatches; False if the other half's thread has gone."""
    own, spans = np.empty(len(picks), np.int64), _spans(few)
    for i in range(len(picks)):
        own[i] = samples[picks[i]]
    for b in range(len(ends) - 1):
        middle = (ends[b] + ends[b + 1] + 1) // 2
        begin, end = (ends[b], middle) if which == 0 else (middle, ends[b + 1])
        value_gradient(
            listed[0], listed[1], listed[2], listed[3], picks[begin:end], ages, games, actions, own[begin:end],
            weights[0], weights[1], weights[2], weights[3], past, choices, targets, scales[b],
            gradient[0], gradient[1], gradient[2], gradient[3], touched,
        )  # fmt: skip
        if not step_of_half(
            which, place, b, touched, other_touched, buffers, spans, len(few), w1_begin, weights[2].shape[1],
            learning_rate, beta_1, beta_2, epsilon, updates,
        ):  # fmt: skip
            return False
        # No weight changes before the next meeting. At first the mean is that of all weights so far.
        share, middle = np.float32(max(1.0 - decay, 1.0 / (updates + b + 1))), len(means) // 2
        own_part = slice(0, middle) if which == 0 else slice(middle, len(means))
        mean, now = means[own_part], buffers[0][own_part]
        for i in range(len(mean)):
            mean[i] += share * (now[i] - mean[i])
    return True
