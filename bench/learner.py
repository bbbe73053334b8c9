"""The learner of preset fast: µs per sample and epoch, by stage, and against dense NumPy and PyTorch (if installed).

    python bench/learner.py [--hidden 64 192] [--rounds 7] [--json]

The samples are steps of 64 real games with drawn actions. *update* is a whole `PPO.learn` over 64 × 128 steps: all
passes, the optimiser and the bookkeeping, divided by samples and passes; with one thread and with one per core (at most
two). The stages are those of one half of a minibatch, on one thread. The dense gradient is the same one (checked), for
one minibatch, with one BLAS thread. Medians of rounds in turns.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]


def played(hidden: int) -> Any:
    """Play 64 games until a batch is complete, and return the trainer; its games are closed."""
    from fastpong.config import make_config
    from fastpong.games import Games
    from fastpong.trainer import Trainer

    config = make_config("fast", {"hidden": hidden, "held_steps": 0, "kl": 0.0})  # all passes, over all steps
    with Games(config.envs, None, 1, actions=config.actions) as games:
        trainer = Trainer(config, games)
        trainer.start()
        while not trainer.learner.due(trainer.rollout, trainer.tally):
            trainer.advance()
    return trainer


def images_of(rollout: Any, samples: npt.NDArray[np.int64], frames: int) -> F32:
    """Write out what some samples show: float32 (m, 400 cells, frames · 32 pixels)."""
    images = np.zeros((len(samples), frames, 160, 80), np.float32)
    starts, lengths, ages = (getattr(rollout, name).reshape(-1) for name in ("starts", "lengths", "ages"))
    for i, sample in enumerate(samples):
        for f in range(min(int(ages[sample]) + 1, frames)):
            s = sample - f * rollout.games
            for run in rollout.items[starts[s] : starts[s] + lengths[s]].tolist():
                row, column = divmod(run // 8, 80)
                images[i, f, row : row + run % 8 + 1, column] = 1.0
    cells = images.reshape(-1, frames, 20, 8, 20, 4).transpose(0, 2, 4, 1, 3, 5)
    return np.ascontiguousarray(cells).reshape(len(samples), 400, frames * 32)


class Dense:
    """The network and its gradient as products of dense matrices, without the last action (its row of `w1` is 0)."""

    def __init__(self, arrays: dict[str, F32], cells: F32):
        self.cells, self.kernel = cells, arrays["kernel"].reshape(-1, 64)
        self.w1, self.constant, self.w2 = arrays["w1"][:7056], arrays["w1"][7056], arrays["w2"]

    def gradient(self, slopes_of: Callable[[F32], F32]) -> tuple[F32, F32, F32]:
        """Return the gradients of kernel, `w1` and `w2`, from those of the outputs (m, actions + 1)."""
        m = len(self.cells)
        parts = (self.cells.reshape(-1, self.cells.shape[2]) @ self.kernel).reshape(m, 20, 20, 4, 16)
        acts = np.zeros((m, 21, 21, 16), np.float32)
        for d in range(4):
            acts[:, d >> 1 : 20 + (d >> 1), d & 1 : 20 + (d & 1)] += parts[:, :, :, d]
        flat: F32 = np.maximum(acts, 0.0).reshape(m, 7056)
        hidden = np.maximum(flat @ self.w1 + self.constant, 0.0)
        slopes = slopes_of(hidden @ self.w2[:, :-1].T + self.w2[:, -1])
        grad_hidden = (slopes @ self.w2[:, :-1]) * (hidden > 0)
        grad_acts = ((grad_hidden @ self.w1.T) * (flat > 0)).reshape(m, 21, 21, 16)
        grad_parts = np.empty_like(parts)
        for d in range(4):
            grad_parts[:, :, :, d] = grad_acts[:, d >> 1 : 20 + (d >> 1), d & 1 : 20 + (d & 1)]
        grad_kernel = self.cells.reshape(-1, self.cells.shape[2]).T @ grad_parts.reshape(-1, 64)
        return grad_kernel, flat.T @ grad_hidden, slopes.T @ hidden


def slopes_of(config: Any, outputs: F32, actions: Any, log_probs: F32, advantages: F32, targets: F32) -> F32:
    """Return the gradient of the objective, see `fastpong.kernels.ppo.clipped_gradient`, by the outputs."""
    logits = outputs[:, :-1]
    probs = np.exp(logits - logits.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    logs, taken = np.log(probs), np.arange(len(actions))
    ratio = np.exp(logs[taken, actions] - log_probs)
    clipped = np.where(advantages > 0, ratio > 1 + config.clip_high, ratio < 1 - config.clip)
    pull = np.where(clipped, 0.0, ratio * advantages)[:, None]
    entropy = -(probs * logs).sum(1, keepdims=True)
    slopes = np.empty_like(outputs)
    slopes[:, :-1] = pull * (np.eye(logits.shape[1])[actions] - probs) - config.entropy * probs * (logs + entropy)
    slopes[:, -1] = config.value_weight * (targets - outputs[:, -1])
    slopes /= len(actions)
    return slopes


def torch_gradient(dense: Dense, slopes: F32) -> Callable[[], Any] | None:
    """Return a function that takes PyTorch through the same passes, or None without PyTorch."""
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


def timed(work: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(hidden: int, rounds: int) -> dict[str, Any]:
    """Measure all of it for one width."""
    from fastpong.cores import usable_cores
    from fastpong.kernels import convolution as conv
    from fastpong.kernels import optimiser as adam
    from fastpong.kernels import ppo as clipped
    from fastpong.kernels.sites import SITES, group_by_site, list_sites

    optimiser: Any = adam  # their arguments are unpacked from lists
    ppo: Any = clipped
    trainer = played(hidden)
    rollout, learner, config = trainer.rollout, trainer.learner, trainer.config
    arrays = trainer.policy.arrays

    def flat(name: str) -> Any:
        return getattr(rollout, name).reshape(-1)

    arrays["w1"][7057:] = 0.0
    rng, begin, rows = np.random.default_rng(0), int(rollout.begins[0]), rollout.rows - 1
    steps = np.arange(begin * 64, rows * 64)
    shown = (rollout.items, flat("starts"), flat("lengths"), flat("ages"), 64, steps, config.frames)
    listed = list_sites(*shown)
    samples = rng.choice(steps, config.minibatch, replace=False)
    half = samples[: config.minibatch // 2]
    values: Any = [rng.standard_normal(rollout.starts.size).astype(np.float32) for _ in range(2)]
    ones = np.ones(rollout.starts.size, np.float32)
    gradients = {name: np.zeros_like(array) for name, array in arrays.items()}
    touched, sums = np.zeros(SITES + 1, np.bool_), np.zeros(4)

    def gradient(part: npt.NDArray[np.int64]) -> None:
        ppo.clipped_gradient(
            *listed, part - steps[0], flat("ages"), 64, flat("actions"), flat("log_probs"), *values,
            ones, flat("planned"), part, *arrays.values(), config.past_actions, config.clip, config.clip_high,
            config.entropy, config.value_weight, 1.0 / len(part), *gradients.values(), touched, sums,
        )  # fmt: skip

    few = samples[:128]
    dense = Dense(arrays, images_of(rollout, few, config.frames))
    picked: Any = [flat("actions")[few].astype(np.int64), flat("log_probs")[few], values[0][few], values[1][few]]

    def densely() -> tuple[F32, F32, F32]:
        return dense.gradient(lambda outputs: slopes_of(config, outputs, *picked))

    gradient(few)
    for name, wanted in zip(("kernel", "w1", "w2"), densely(), strict=True):
        found = gradients[name].reshape(-1, 64) if name == "kernel" else gradients[name]
        found = found[:7056] if name == "w1" else found[:, :-1] if name == "w2" else found
        np.testing.assert_allclose(found, wanted, atol=2e-3 * np.abs(wanted).max())
    torch_run = torch_gradient(dense, rng.standard_normal((len(few), config.actions + 1), np.float32))

    picks = half - steps[0]
    acts, groups, firsts, places, owners = conv.forward(
        *listed, picks, flat("ages"), 64, flat("actions"), half,
        arrays["kernel"], arrays["bias"], arrays["w1"], config.past_actions, config.actions,
    )[1:]  # fmt: skip
    prefix, grad_prefix = conv.new_sums(arrays["kernel"]), conv.new_sums(arrays["kernel"])
    grad_bias = gradients["bias"]
    units, spare = np.zeros((len(half), hidden), np.float32), acts.copy()
    grads = rng.standard_normal(units.shape).astype(np.float32) * (rng.random(units.shape) < 0.33)
    moved = listed[2:]
    owned = (flat("ages"), flat("actions"), 64, half, config.past_actions, config.actions, groups, owners)
    means: Any = [np.zeros(arrays["w1"].size, np.float32) for _ in range(4)]
    everything = np.array([[0, arrays["w1"].size]])
    stages: dict[str, tuple[Callable[[], Any], int]] = {
        "list of sites, once for all passes": (lambda: list_sites(*shown), len(steps)),
        "sorting by site": (lambda: group_by_site(*listed[:2], picks, groups, firsts, places, owners), len(half)),
        "convolution": (lambda: conv.convolve(*moved, picks, prefix, arrays["bias"], firsts, places, spare), len(half)),
        "hidden layer": (lambda: conv.hidden_layer(*owned, acts, arrays["w1"], units), len(half)),
        "its gradient": (lambda: conv.hidden_gradient(*owned, spare, arrays["w1"], grads, gradients["w1"]), len(half)),
        "gradient of the convolution": (
            lambda: conv.convolve_gradient(*moved, picks, firsts, places, spare, grad_prefix, grad_bias), len(half)
        ),
        "all of the gradient": (lambda: gradient(half), len(half)),
        "Adam": (
            lambda: optimiser.adam(arrays["w1"].reshape(-1), *means, everything, 0, 1, 0.0, 0.9, 0.999, 1e-5, 9),
            config.minibatch,
        ),
    }  # fmt: skip

    def update() -> None:
        rollout.begins[:] = begin
        learner.learn(rollout, trainer.tally)

    pools = {1: None, min(2, usable_cores()): learner.adam.pool}
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        found = {name: 1e6 * timed(work) / size for name, (work, size) in stages.items()}
        for threads, pool in pools.items():
            learner.adam.pool = pool
            found[f"update, {threads} thread{'s' * (threads > 1)}"] = 1e6 * timed(update) / len(steps) / config.epochs
        found["dense NumPy"] = 1e6 * timed(densely) / len(few)
        if torch_run:
            found["PyTorch"] = 1e6 * timed(torch_run) / len(few)
        for name, value in found.items():
            times.setdefault(name, []).extend([value] * (number > 0))
    results: dict[str, Any] = {name: statistics.median(all_of) for name, all_of in times.items()}
    ratios = [b / a for a, b in zip(times["all of the gradient"], times["dense NumPy"], strict=True)]
    return {**results, "dense / sparse": statistics.median(ratios), "sites a sample": int(firsts[-1]) / len(half)}


def main() -> None:
    """Measure each width."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        if os.environ.get(name) != "1":  # is read when NumPy loads
            os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **dict.fromkeys(
                ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")})  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 192])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {hidden: measure(hidden, arguments.rounds) for hidden in arguments.hidden}
    if arguments.json:
        print(json.dumps(results))
        return
    print("| µs per sample and epoch | " + " | ".join(f"{hidden} hidden units" for hidden in results) + " |")
    print("|---" * (len(results) + 1) + "|")
    for name in next(iter(results.values())):
        print(f"| {name} | " + " | ".join(f"{result[name]:.2f}" for result in results.values()) + " |")


if __name__ == "__main__":
    main()
