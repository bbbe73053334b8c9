"""What kernels are told together: the network, the steps of all games, a pass over a batch, and the optimiser."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


class Network(NamedTuple):
    """All weights, or what belongs to each of them: its gradient, or one of Adam's means.

    Attributes
    ----------
    kernel : float32 (frames, 8, 4, 64)
    bias : float32 (16,)
    w1 : float32 (7072, hidden)
    w2 : float32 (outputs, hidden + 1)
    """

    kernel: F32
    bias: F32
    w1: F32
    w2: F32


class Rows(NamedTuple):
    """The steps of all games, all arrays (rows · games,): one row of time after the other; see `fastpong.rollout`.

    Attributes
    ----------
    starts, lengths : int64
        Where what the game shows stands in the list of all games, and how long it is.
    ages : int64
        Steps of the game before this one.
    practising, planned : int8
        Not 0 where the step belongs to a practice attempt; 1 + the action that has to be taken, 0 where the agent is
        free to choose.
    held : int16
        Steps for which the paddle is still held, > 0 upwards, < 0 downwards; 0: the agent plays.
    actions : uint8
        What is done.
    log_probs, values : float32
        Log of the action's probability, 0 where the paddle is held, and the value of the state.
    rewards : int8
        What comes of it.
    """

    starts: I64
    lengths: I64
    ages: I64
    practising: I8
    planned: I8
    held: I16
    actions: U8
    log_probs: F32
    values: F32
    rewards: I8


class Pass(NamedTuple):
    """Which samples a pass goes over, and room for what its minibatches need.

    Attributes
    ----------
    picks : int64 (m,)
        The samples of all minibatches, one after the other, as indices into what was listed.
    ends : int64 (minibatches + 1,)
        Those of minibatch b are ``picks[ends[b] : ends[b + 1]]``.
    scales : float64 (minibatches,)
        Weight of a sample: 1 / size of its minibatch.
    samples : int64 (m,)
        `picks` as indices into what is known of each step.
    places : int64 (listed,)
        See `sites.deal`, here and in the next two.
    bounds : int32 (minibatches + 1, 441)
    rows, kinds : two int32 (entries,) each
        Of either half of the sites.
    hidden, others, grad_hidden : float32 (largest minibatch, hidden)
        What either half of the sites contributes, and the gradient of the sum after the relu.
    """

    picks: I64
    ends: I64
    scales: npt.NDArray[np.float64]
    samples: I64
    places: I64
    bounds: I32
    rows: tuple[I32, I32]
    kinds: tuple[I32, I32]
    hidden: F32
    others: F32
    grad_hidden: F32


class Optimiser(NamedTuple):
    """How Adam changes the weights: its running means, and its settings; `updates` are its steps before the pass.

    With `apply`, weights change in the pass; otherwise only the gradient of one minibatch is computed.
    """

    mean: Network
    square: Network
    apply: bool
    learning_rate: float
    beta_1: float
    beta_2: float
    epsilon: float
    updates: int
