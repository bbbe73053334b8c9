"""The learner of preset fast: µs per sample and epoch, by stage, and against dense NumPy and PyTorch (if installed).

    python -m bench.learner [--hidden 64 192] [--envs 64] [--skip 0] [--rounds 7] [--json]

The samples are a batch of real games with sampled actions, after the first `--skip` steps of each: the longer they
have played, the less alike they are. *update* is a whole `PPO.learn` over them: the list of patches, all epochs, the
optimiser and the bookkeeping, divided by samples and epochs; with 1, 2, 4 … threads, one a core, eight at most. The
stages are those of minibatches, all parts one after the other, on one thread. The dense gradient is the
same one (checked), for 128 samples, with one BLAS thread. Prints a Markdown table of medians of rounds in turns.
"""

import functools
import json
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import in_turns, parser, per_sample
from fastpong.arrays import F32, I64
from fastpong.config import Config, make_config
from fastpong.envs.base import COURTS
from fastpong.envs.process import THREAD_VARIABLES
from fastpong.envs.vector_env import VectorEnv
from fastpong.kernels import epochs, optimiser
from fastpong.kernels.buckets import bucket_by_minibatch, bucket_of
from fastpong.kernels.compile.jit import uncompiled, zeros
from fastpong.kernels.conv import SIDE, conv_hidden_backward, prefix_gradient, prefix_sums
from fastpong.kernels.patches import PARTS, POSITIONS
from fastpong.kernels.preprocess import STRIP_ROWS
from fastpong.kernels.structs import Adam, Epoch, Inputs, Loss, Network, Transitions
from fastpong.learners.ppo import PPO, VALUE_COEF
from fastpong.learners.threads import Threads
from fastpong.learners.updater import Epochs, Samples, Updater
from fastpong.parallel.comm import Serial
from fastpong.parallel.machine import usable_cores
from fastpong.policy import ConvPolicy
from fastpong.pong import COURT
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer


def played(hidden: int, envs: int, skip: int) -> Trainer:
    """Play until a batch is complete, and return the trainer; its envs are closed."""
    # Every step is learned from if none is forced.
    config = make_config("fast", {"hidden_units": hidden, "num_envs": envs, "exploring_start_steps": 0})
    with VectorEnv(envs, seed=1, num_actions=config.num_actions, images=COURTS) as games:
        trainer = Trainer(config, Actor(config, games))
        trainer.start()
        for _ in range(skip):
            trainer.step()
            trainer.rollout.release(trainer.rollout.rows - 1)
        while not trainer.learner.due(trainer.rollout, trainer.stats):
            trainer.step()
    return trainer


def images_of(inputs: Inputs, samples: I64) -> F32:
    """Write out what some samples show: float32 (m, 400 cells, frames · 32 pixels)."""
    frames, arrays = inputs.frame_stack, inputs.arrays
    images = np.zeros((len(samples), frames, *COURT), np.float32)
    for i, sample in enumerate(samples):
        for f in range(min(int(arrays.steps_since_reset[sample]) + 1, frames)):
            s = sample - f * inputs.envs
            for strip in inputs.images[arrays.offsets[s] : arrays.offsets[s] + arrays.lengths[s]].tolist():
                row, column = divmod(strip // STRIP_ROWS, COURT[1])
                images[i, f, row : row + strip % STRIP_ROWS + 1, column] = 1.0
    cells = images.reshape(-1, frames, 20, 8, 20, 4).transpose(0, 2, 4, 1, 3, 5)
    return np.ascontiguousarray(cells).reshape(len(samples), 400, frames * 32)


class Dense:
    """The network and its gradient as products of dense matrices, without previous actions (their rows of w1 are 0)."""

    def __init__(self, network: Network, cells: F32):
        self.cells, self.kernel = cells, network.kernel.reshape(-1, 64)
        self.w1, self.constant, self.w2 = network.w1[:SIDE], network.w1[SIDE], network.w2

    def gradient(self, slopes_of: Callable[[F32], F32]) -> tuple[F32, F32, F32]:
        """Return the gradients of kernel, `w1` and `w2`, from those of the outputs (m, actions + 1)."""
        m = len(self.cells)
        parts = (self.cells.reshape(-1, self.cells.shape[2]) @ self.kernel).reshape(m, 20, 20, 4, 16)
        channels = np.zeros((m, 21, 21, 16), np.float32)
        for d in range(4):
            channels[:, d >> 1 : 20 + (d >> 1), d & 1 : 20 + (d & 1)] += parts[:, :, :, d]
        flat: F32 = np.maximum(channels, 0.0).reshape(m, SIDE)
        hidden = np.maximum(flat @ self.w1 + self.constant, 0.0)
        slopes = slopes_of(hidden @ self.w2[:, :-1].T + self.w2[:, -1])
        grad_hidden = (slopes @ self.w2[:, :-1]) * (hidden > 0)
        grad_channels = ((grad_hidden @ self.w1.T) * (flat > 0)).reshape(m, 21, 21, 16)
        grad_parts = np.empty_like(parts)
        for d in range(4):
            grad_parts[:, :, :, d] = grad_channels[:, d >> 1 : 20 + (d >> 1), d & 1 : 20 + (d & 1)]
        grad_kernel = self.cells.reshape(-1, self.cells.shape[2]).T @ grad_parts.reshape(-1, 64)
        return grad_kernel, flat.T @ grad_hidden, slopes.T @ hidden


def slopes_of(loss: Loss, transitions: Transitions, outputs: F32) -> F32:
    """Return the gradient of the loss by the outputs, see `fastpong.kernels.losses.loss_gradient`."""
    actions, log_probs, advantages, returns = transitions
    logits = outputs[:, :-1] - outputs[:, :-1].max(1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))  # no-op's probability is 0 at first
    probs = np.exp(logs)
    ratio = np.exp(logs[np.arange(len(actions)), actions] - log_probs)
    clipped = np.where(advantages > 0, ratio > 1 + loss.clip_high, ratio < 1 - loss.clip_low)
    pull = np.where(clipped, 0.0, ratio * advantages)[:, None]
    entropy = -(probs * logs).sum(1, keepdims=True)
    slopes = np.empty_like(outputs)
    slopes[:, :-1] = pull * (np.eye(logits.shape[1])[actions] - probs) - loss.entropy_coef * probs * (logs + entropy)
    slopes[:, -1] = loss.value_coef * (returns - outputs[:, -1])
    slopes /= len(actions)
    return slopes


def torch_gradient(dense: Dense, slopes: F32) -> Callable[[], Any] | None:
    """Return a function that takes PyTorch through the same gradient, or None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    cells, w1, w2 = (torch.from_numpy(np.ascontiguousarray(a)) for a in (dense.cells, dense.w1, dense.w2[:, :-1]))
    kernel, constant, given = (torch.from_numpy(a.copy()) for a in (dense.kernel, dense.constant, slopes))
    kernel.requires_grad_(), w1.requires_grad_(), w2.requires_grad_()

    def run() -> Any:
        for array in (kernel, w1, w2):
            array.grad = None
        parts = (cells @ kernel).reshape(-1, 20, 20, 4, 16)
        pad = torch.nn.functional.pad
        total = sum(pad(parts[:, :, :, d], (0, 0, d & 1, 1 - (d & 1), d >> 1, 1 - (d >> 1))) for d in range(4))
        hidden = torch.relu(torch.relu(total).reshape(len(cells), -1) @ w1 + constant)
        (hidden @ w2.T).backward(given)
        return kernel.grad

    return run


class Stages:
    """The stages of an epoch, each over all minibatches, on one thread.

    Parameters
    ----------
    policy : ConvPolicy
        Its weights stay as they are.
    """

    def __init__(self, policy: ConvPolicy):
        net = policy.net
        self.network = net.network
        self.gradient = Network(**net.split(zeros(len(net.flat))))
        self.rests = Updater(net, Serial(), Threads(1)).rests
        averages = [Network(**net.split(zeros(len(net.flat)))) for _ in range(2)]
        self.adam = Adam(averages[0], averages[1], np.zeros(441, np.bool_), False, 0.0, 0)
        self.rates = optimiser.rates_of(0.0, 9)

    def begin(self, epoch: Epoch) -> None:
        """Go over this epoch from now on."""
        self.epoch, self.minibatches = epoch, len(epoch.scales)
        self.work = epochs.new_workspace(epoch.patches, self.network)

    def bucket(self) -> None:
        """Bucket by minibatch."""
        bucket_by_minibatch(self.epoch.patches, self.epoch.slots, self.epoch.buckets, 0, POSITIONS)

    def forward(self) -> None:
        """Compute channels, and what positions contribute to hidden units."""
        for b in range(self.minibatches):
            sums = prefix_sums(self.network.kernel)
            totals = self.epoch.totals[0]
            totals[:] = 0
            for part in range(PARTS):
                epochs.add_part(part, b, sums, self.work, self.epoch, self.network, totals)

    def outputs(self) -> None:
        """Compute outputs and the gradient of hidden units."""
        for b in range(self.minibatches):
            for part in range(PARTS):
                rest = uncompiled(epochs.rest_of)(self.rests[part], self.network)
                epochs.learn_outputs(part, b, self.epoch, self.network, rest)

    def backward(self) -> None:
        """Carry the gradient back to positions and channels."""
        e = self.epoch
        for b in range(self.minibatches):
            for part in range(PARTS):
                rest = uncompiled(epochs.rest_of)(self.rests[part], self.network)
                conv_hidden_backward(
                    e.patches, uncompiled(bucket_of)(part, b, e), self.network, e.grad_hidden, self.work,
                    2 * b + 2, self.gradient.w1, rest.bias, (self.adam, self.rates),
                )  # fmt: skip
                prefix_gradient(self.work.grad_sums, rest.kernel)

    def add_up(self) -> None:
        """Do all of that."""
        progress = np.zeros((1, 8), np.int64)
        epochs.learn_minibatches(
            0, progress, 0, self.minibatches, self.epoch, self.network, self.gradient, self.rests, self.adam
        )  # fmt: skip

    def step(self) -> None:
        """Take a step of Adam in all of `w1`."""
        w1, gradient, *averages = (
            network.w1.reshape(-1) for network in (self.network, self.gradient, self.adam.exp_avg, self.adam.exp_avg_sq)
        )
        optimiser.adam(w1, gradient, averages[0], averages[1], self.rates)


def check(stages: Stages, dense: Dense, samples: Samples, transitions: Transitions, loss: Loss, hidden: int) -> None:
    """Make sure that a minibatch of these samples has the dense gradient."""
    count = len(samples.samples)
    stages.begin(Epochs(samples, transitions, loss, np.arange(count), count, hidden).shuffled(np.arange(count)))
    stages.add_up()
    kernel, _, w1, w2 = stages.gradient
    wanted = dense.gradient(functools.partial(slopes_of, loss, transitions))
    for mine, theirs in zip((kernel.reshape(-1, 64), w1[:SIDE], w2[:, :-1]), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-3 * np.abs(theirs).max())


def measure(hidden: int, envs: int, skip: int, rounds: int) -> dict[str, Any]:
    """Measure all of it for one width."""
    trainer = played(hidden, envs, skip)
    rollout, policy, config = trainer.rollout, trainer.policy, trainer.config
    assert isinstance(policy, ConvPolicy)
    policy.net.network.w1[SIDE + 1 :] = 0.0
    inputs, saved = rollout.inputs, rollout.state()
    begin, end = int(rollout.first_unused[0]) * inputs.envs, (rollout.rows - 1) * inputs.envs
    size, shown, rng = end - begin, np.arange(begin, end + inputs.envs), np.random.default_rng(0)
    one_thread = Threads(1)
    loss = Loss(config.clip_low, config.clip_high, config.entropy_coef, VALUE_COEF, 0.0)
    actions, log_probs = inputs.arrays.actions[begin:end], inputs.arrays.log_probs[begin:end]
    advantages, returns = rng.standard_normal((2, size), np.float32)
    transitions = Transitions(actions, log_probs, advantages, returns)

    stages, few = Stages(policy), np.sort(rng.permutation(size)[:128])
    dense = Dense(policy.net.network, images_of(inputs, begin + few))
    part = Transitions(actions[few], log_probs[few], advantages[few], returns[few])
    check(stages, dense, Samples(inputs, begin + few, one_thread), part, loss, hidden)
    samples = Samples(inputs, shown, one_thread)
    everything = Epochs(samples, transitions, loss, np.arange(size), config.minibatch_size, hidden)
    stages.begin(everything.shuffled(rng.permutation(size)))

    works: dict[str, tuple[Callable[[], Any], int]] = {
        "list of patches, once for all epochs": (lambda: Samples(inputs, shown, one_thread), len(shown)),
        "bucketing by minibatch": (stages.bucket, size),
        "channels and what positions contribute": (stages.forward, size),
        "outputs and their gradient": (stages.outputs, size),
        "gradient of positions and channels": (stages.backward, size),
        "all of the gradient": (stages.add_up, size),
        "Adam": (stages.step, config.minibatch_size),
    }
    measurements = {name: per_sample(work, count) for name, (work, count) in works.items()}
    measurements |= updates(config, policy, trainer, saved, size)
    slopes = functools.partial(slopes_of, loss, part)
    measurements["dense NumPy"] = per_sample(lambda: dense.gradient(slopes), len(few))
    torch_run = torch_gradient(dense, rng.standard_normal((128, config.num_actions + 1), np.float32))
    if torch_run:
        measurements["PyTorch"] = per_sample(torch_run, len(few))
    times = in_turns(measurements, rounds)

    ratios = [b / a for a, b in zip(times["all of the gradient"], times["dense NumPy"], strict=True)]
    stages.bucket()
    buckets = stages.epoch.buckets
    distinct = sum(
        len(np.unique(buckets.patch_ids[buckets.offsets[b, q] : buckets.offsets[b + 1, q]]))
        for b in range(stages.minibatches) for q in range(POSITIONS)
    )  # fmt: skip
    return {
        **{name: statistics.median(values) for name, values in times.items()},
        "dense / sparse": statistics.median(ratios),
        "positions with a patch, a sample": len(samples.patches.patch_ids) / len(shown),
        "… that differ in a minibatch": distinct / size,
        "patches in the batch, all parts": len(samples.patches.strip_offsets) - 1,
    }


def updates(
    config: Config, policy: ConvPolicy, trainer: Trainer, saved: dict[str, npt.NDArray[Any]], size: int
) -> dict[str, Callable[[], float]]:
    """Return measurements of whole updates, by 1, 2, 4 … threads, as many as there are cores."""

    def measurement(learner: PPO) -> Callable[[], float]:
        learn = per_sample(lambda: learner.learn(trainer.rollout, trainer.stats), size * config.update_epochs)

        def measure_once() -> float:
            trainer.rollout.load_state(saved)  # `learn` releases the rows
            return learn()

        return measure_once

    counts, envs = [count for count in (1, 2, 4, 8) if count <= min(PARTS, usable_cores())], range(config.num_envs)
    return {f"update, threads: {count}": measurement(PPO(config, policy, Serial(), envs, count)) for count in counts}


def main() -> None:
    """Measure each width."""
    if any(os.environ.get(name) != "1" for name in THREAD_VARIABLES):  # they are read when NumPy loads
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
        os.execve(sys.executable, [sys.executable, "-m", "bench.learner", *sys.argv[1:]], environment)
    options = parser(__doc__)
    options.add_argument("--hidden", type=int, nargs="+", default=[64, 192])
    options.add_argument("--envs", type=int, default=64)
    options.add_argument("--skip", type=int, default=0, help="steps of each game before those that are learned from")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", action="store_true")
    arguments = options.parse_args()
    results = {hidden: measure(hidden, arguments.envs, arguments.skip, arguments.rounds) for hidden in arguments.hidden}
    if arguments.json:
        print(json.dumps(results))
        return
    print("| µs per sample and epoch | " + " | ".join(f"{hidden} hidden units" for hidden in results) + " |")
    print("|---" * (len(results) + 1) + "|")
    for name in next(iter(results.values())):
        print(f"| {name} | " + " | ".join(f"{result[name]:.2f}" for result in results.values()) + " |")


if __name__ == "__main__":
    main()
