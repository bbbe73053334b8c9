"""Learning from one real batch with the reference programs' network: sparse kernels against dense NumPy and PyTorch.

    python -m bench.gradient [--samples 4096] [--hidden 200] [--rounds 7] [--json]

The samples are difference images of real games. *gradient* is the forward and backward pass, *update* a step of RMSProp
after it as well, shared among the samples. NumPy (BLAS) and PyTorch (if installed) get their dense float32 matrix for
free; they compute the same gradient (checked), once with one thread and once with one per core. Prints medians of
rounds in turns, in µs per sample.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import in_turns, parser, per_sample
from fastpong.arrays import F32, I64
from fastpong.config import make_config
from fastpong.envs.base import LocalEnvs
from fastpong.envs.process import THREAD_VARIABLES
from fastpong.kernels import mlp, optimiser
from fastpong.kernels.preprocess import Observation, as_words, dense
from fastpong.kernels.structs import Mlp
from fastpong.learners.reinforce import DECAY, EPSILON
from fastpong.policy import Weights, make_policy
from fastpong.rollout.buffer import Rollout


def real_batch(samples: int, hidden: int) -> tuple[Weights, Rollout, I64]:
    """Difference images of 16 games played at random: weights, the rollout with the images, and their indices."""
    policy = make_policy(make_config("karpathy", {"num_envs": 16, "hidden_units": hidden}))
    envs, rollout, rng = LocalEnvs(range(16), seed=1), policy.make_rollout(16), np.random.default_rng(0)
    envs.reset()
    members, observation = envs.groups[0], Observation(as_words(envs.screens), envs.rewards, envs.ended)
    while rollout.rows * 16 < samples:
        row = rollout.new_row()
        rollout.record(row, observation, members, members)
        rollout.arrays.actions[row] = rng.integers(0, 2, 16)
        envs.send(0, rollout.arrays.actions[row])
        envs.recv(0)
    return policy.weights, rollout, rng.permutation(rollout.rows * 16)[:samples]


def dense_gradient(x: F32, actions: npt.NDArray[Any], advantages: F32, w1: F32, w2: F32) -> tuple[F32, F32]:
    """Compute the reference programs' policy_forward and policy_backward over a batch, x (m, pixels), as products."""
    hidden = x @ w1
    hidden[hidden < 0] = 0
    p_up = 1 / (1 + np.exp(-(hidden @ w2[0])))
    slope = ((actions == 0) - p_up) * advantages
    grad_hidden = np.outer(slope, w2[0])
    grad_hidden[hidden <= 0] = 0
    return x.T @ grad_hidden.astype(np.float32), (hidden.T @ slope)[None]


def torch_gradient(
    x: F32, actions: npt.NDArray[Any], advantages: F32, w1: F32, w2: F32
) -> Callable[[], tuple[F32, F32]] | None:
    """Return a function that computes the same gradient with PyTorch, or None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    inputs, weights = torch.from_numpy(x), [torch.from_numpy(w.copy()).requires_grad_() for w in (w1, w2)]
    sign, wanted = torch.from_numpy(np.where(actions == 0, 1.0, -1.0).astype(np.float32)), torch.from_numpy(advantages)

    def run() -> tuple[F32, F32]:
        logits = torch.relu(inputs @ weights[0]) @ weights[1][0]
        total = (torch.nn.functional.logsigmoid(sign * logits) * wanted).sum()
        one, two = torch.autograd.grad(total, weights)
        return one.numpy(), two.numpy()

    return run


def measure(samples: int, hidden: int, rounds: int) -> dict[str, Any]:
    """µs per sample of each, in turns, and the ratio within each round."""
    weights, rollout, chosen = real_batch(samples, hidden)
    inputs, arrays = rollout.inputs, rollout.inputs.arrays
    offsets, lengths, actions = arrays.offsets[chosen], arrays.lengths[chosen], arrays.actions[chosen]
    advantages = np.random.default_rng(1).standard_normal(samples).astype(np.float32)
    x = np.zeros((samples, 6400), np.float32)
    for i, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        x[i] = dense(inputs.images[offset : offset + length])
    network, gradient, cache = Mlp(**weights.arrays), np.zeros_like(weights.flat), np.zeros_like(weights.flat)
    gradients = Mlp(**weights.split(gradient))
    torch_run = torch_gradient(x, actions, advantages, *network)

    def sparse() -> None:
        gradient[:] = 0
        mlp.policy_gradient(inputs, chosen, advantages, network, gradients)

    def update() -> None:
        sparse()
        optimiser.rmsprop(weights.flat, gradient, cache, 0.0, DECAY, EPSILON)

    def dense_numpy() -> tuple[F32, F32]:
        return dense_gradient(x, actions, advantages, *network)

    sparse()
    for reference in (dense_numpy, torch_run):
        for found, wanted in zip(gradients, reference() if reference else (), strict=False):
            np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-3 * np.abs(wanted).max())
    works: dict[str, Callable[[], Any]] = {"gradient": sparse, "update": update, "numpy": dense_numpy}
    if torch_run:
        works["torch"] = torch_run
    times = in_turns({name: per_sample(work, samples) for name, work in works.items()}, rounds)
    results: dict[str, Any] = {"non_zeros": float(lengths.mean())}
    for name, values in times.items():
        results[name] = {"us": statistics.median(values)}
        if name in ("numpy", "torch"):
            ratios = [b / a for a, b in zip(times["gradient"], values, strict=True)]
            results[name] |= {"ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
    return results


def main() -> None:
    """Measure in one process for each number of threads, which is fixed when NumPy loads."""
    options = parser(__doc__)
    options.add_argument("--samples", type=int, default=4096)
    options.add_argument("--hidden", type=int, default=200)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", action="store_true")
    arguments = options.parse_args()
    if os.environ.get("FASTPONG_BENCH_THREADS"):
        print(json.dumps(measure(arguments.samples, arguments.hidden, arguments.rounds)))
        return
    results = {}
    for count in (1, len(os.sched_getaffinity(0))):
        environment = {**os.environ, "FASTPONG_BENCH_THREADS": "1", **dict.fromkeys(THREAD_VARIABLES, str(count))}
        command = [sys.executable, "-m", "bench.gradient", *sys.argv[1:]]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        results[str(count)] = json.loads(done.stdout)
    if arguments.json:
        print(json.dumps(results))
        return
    print(f"{arguments.samples} samples, {arguments.hidden} hidden units; µs per sample, one thread for what is sparse")
    for threads, r in results.items():
        ours = f"gradient {r['gradient']['us']:.2f}, update {r['update']['us']:.2f}"
        print(f"{ours}; {r['non_zeros']:.0f} non-zeros a sample")
        for name in sorted(r.keys() & {"numpy", "torch"}):
            peer = r[name]
            print(
                f"  dense {name} with {threads} threads: gradient {peer['us']:.1f}, "
                f"{peer['ratio']:.0f} times as much ({peer['low']:.0f} … {peer['high']:.0f})"
            )


if __name__ == "__main__":
    main()
