"""The arrays that kernels share, by name: the rollout, a network, an epoch of minibatches, and the optimiser."""

from typing import Any, NamedTuple

from fastpong.arrays import F32, F64, I8, I16, I32, I64, U8, Bool


class RolloutArrays(NamedTuple):
    """Columns of the rollout buffer: one row per step of all envs, flattened to (rows · envs,) for kernels."""

    offsets: I64  # where an image's numbers begin in the list of all images
    lengths: I64  # how many they are
    steps_since_reset: I64  # steps of the game before this one: history goes back no further
    forced: I16  # steps for which an exploring start still holds the paddle, > 0 up, < 0 down; 0: the policy acts
    actions: U8  # 0 up, 1 down, 2 no-op
    log_probs: F32  # log of the action's probability, 0 where it was forced
    values: F32  # the value of the state
    rewards: I8  # points won minus lost in the step
    ended: I8  # 1 where the step ended a game


class Inputs(NamedTuple):
    """Where inputs stand. A sample is an index s = t · envs + n; its predecessor is s − envs."""

    images: Any  # int32 or int16 (…,) the list of all images, see `preprocess`
    arrays: RolloutArrays
    envs: int
    frame_stack: int  # images of a sample
    action_history: int  # previous actions of a sample
    num_actions: int


class Noise(NamedTuple):
    """Who draws: the stream's key (uint64), the global index of env 0, steps since the run began; or greedy play."""

    key: int
    env_offset: int
    step: int
    greedy: bool  # take the likeliest action instead of sampling one


class ExploringStarts(NamedTuple):
    """With which probability a point begins with the paddle held, and for how many steps at most."""

    key: int  # uint64
    probability: float
    max_steps: int


class Mlp(NamedTuple):
    """Weights of the reference programs' two layers, or their gradient."""

    w1: F32  # (6400, hidden)
    w2: F32  # (actions − 1, hidden)


class Network(NamedTuple):
    """Weights of the convolutional network, or what belongs to each of them: a gradient, or one of Adam's averages."""

    kernel: F32  # (frames, 8, 4, 64) by row and column in a cell, for the 16 channels of four positions
    bias: F32  # (16,)
    w1: F32  # (7072, hidden)
    w2: F32  # (outputs, hidden + 1) one row per logit, then the value; the last column is the bias


class Patches(NamedTuple):
    """The distinct patches of some samples, and where each occurs; a pair is (position, sample).

    A patch strip is a difference of two rows of the prefix sums, see `conv.prefix_sums`: row above + length minus row
    above, written as above · 8 + length − 1.
    """

    strip_offsets: I32  # (patches + 1,) strips of patch p: strip_offsets[p] … strip_offsets[p + 1] − 1
    strips: I32  # (…,)
    positions: I64  # (441,) the order in which positions are worked on: a *place* is an index of it
    offsets: I32  # (442,) pairs at place q: offsets[q] … offsets[q + 1] − 1
    patch_ids: I32  # (pairs,) ascending at each place
    sample_ids: I32  # (pairs,) indices into the listed samples


class Bucket(NamedTuple):
    """The pairs of some positions that belong to one minibatch."""

    begins: I32  # (441,) pairs at place q: begins[q] … ends[q] − 1
    ends: I32  # (441,)
    slots: I32  # (pairs,) the row of the sample in the minibatch
    patch_ids: I32  # (pairs,)
    first: int  # the places are first … last − 1
    last: int


class Buckets(NamedTuple):
    """All pairs, bucketed by minibatch."""

    offsets: I32  # (minibatches + 1, 441) of minibatch b at place q: offsets[b, q] … offsets[b + 1, q] − 1
    slots: I32  # (pairs,)
    patch_ids: I32  # (pairs,)


class Transitions(NamedTuple):
    """What is learned from each listed sample."""

    actions: U8  # (listed,)
    log_probs: F32  # (listed,) of the actions, when they were taken
    advantages: F32  # (listed,) standardised
    returns: F32  # (listed,) what the value should have been


class Loss(NamedTuple):
    """Coefficients of the loss, see `losses.loss_gradient`; `scale` is 1 / samples of the minibatch."""

    clip_low: float
    clip_high: float
    entropy_coef: float
    value_coef: float
    scale: float


class Epoch(NamedTuple):
    """The minibatches of an epoch, and buffers for what they need."""

    patches: Patches  # each part of the positions has patches of its own
    bounds: I64  # (PARTS + 1,) part p has the places bounds[p] … bounds[p + 1] − 1
    inputs: Inputs
    transitions: Transitions
    loss: Loss
    sample_ids: I64  # (m,) of all minibatches, one after the other
    offsets: I64  # (minibatches + 1,) minibatch b has sample_ids[offsets[b] : offsets[b + 1]]
    scales: F64  # (minibatches,) 1 / samples, over all ranks
    samples: I64  # (m,) sample_ids as indices into the rollout's arrays
    slots: I64  # (listed,) minibatch · 2³² + row in it, of each listed sample; −1: in none
    buckets: Buckets
    totals: I32  # (threads, ≥ largest minibatch, hidden) what each thread's positions contribute, `tiles.ONE` for 1
    grad_hidden: F32  # (largest minibatch, hidden)
    statistics: F64  # (PARTS, 8) of each part of the samples: entropy, KL, clipped samples, squared value error, 0 …


class Workspace(NamedTuple):
    """What a thread computes for the patches of its positions in a minibatch."""

    visited: I64  # (patches,) stamp of the pass that has computed this patch
    used: I64  # (patches + 1,) the patches that have a gradient
    channels: F32  # (patches, 16)
    grad_channels: F32  # (patches, 16)
    grad_sums: F32  # gradient of the prefix sums


class Rest(NamedTuple):
    """The gradient of the weights that belong to no position."""

    kernel: F32  # as in `Network`, here and in the next
    bias: F32
    side: F32  # (16, hidden) the last rows of `w1`
    w2: F32


class Rates(NamedTuple):
    """Adam's constants at one of its steps; see `optimiser.rates_of`."""

    beta_1: float
    beta_2: float
    rate: float
    root: float
    epsilon: float


class Adam(NamedTuple):
    """State of Adam; with `apply` weights change within the epoch, else a minibatch only adds up its gradient."""

    exp_avg: Network
    exp_avg_sq: Network
    touched: Bool  # (441,) the positions whose weights have a gradient
    apply: bool
    learning_rate: float
    updates: int  # steps before the epoch
