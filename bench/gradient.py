"""Learning from one real batch with the seeds' network: our sparse kernels against dense NumPy (BLAS) and PyTorch.

    python bench/gradient.py [--samples 4096] [--hidden 200] [--rounds 7] [--json]

The samples are difference images of real games. *gradient* is the forward and backward pass, *update* a step of RMSProp
after it as well, shared among the samples. NumPy and PyTorch (if installed) get their dense float32 matrix for free;
they compute the same gradient (checked), once with one thread and once with one per core. Medians of rounds in turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]


def real_batch(samples: int, hidden: int) -> tuple[Any, Any, Any]:
    """Difference images of 16 games played at random: a learner, the rollout with them, and their indices."""
    from fastpong.config import make_config
    from fastpong.kernels.images import as_words
    from fastpong.policy import make_policy
    from fastpong.pong import PongGames
    from fastpong.reinforce import Reinforce
    from fastpong.rollout import Rollout

    config = make_config("karpathy", {"envs": 16, "hidden": hidden})
    games, rollout, rng = PongGames(range(16), seed=1), Rollout(config), np.random.default_rng(0)
    arrays, _ = games.reset()
    members = np.arange(16)
    while rollout.rows * 16 < samples:
        row = rollout.new_row()
        rollout.observe(row, as_words(arrays["screens"]), members, members, arrays["ended"])
        rollout.actions[row] = rng.integers(0, 2, 16)
        games.step(rollout.actions[row])
    return Reinforce(config, make_policy(config)), rollout, rng.permutation(rollout.rows * 16)[:samples]


def dense_gradient(x: F32, actions: npt.NDArray[Any], advantages: F32, w1: F32, w2: F32) -> tuple[F32, F32]:
    """Compute the seeds' policy_forward and policy_backward over a batch, x (m, pixels), as matrix products."""
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
    from fastpong.kernels import network, optimiser
    from fastpong.kernels.images import dense

    learner, rollout, chosen = real_batch(samples, hidden)
    policy = learner.policy
    starts, lengths = rollout.starts.reshape(-1), rollout.lengths.reshape(-1)
    actions = rollout.actions.reshape(-1)
    advantages = np.random.default_rng(1).standard_normal(samples).astype(np.float32)
    x = np.zeros((samples, 6400), np.float32)
    for i, sample in enumerate(chosen):
        x[i] = dense(rollout.items[starts[sample] : starts[sample] + lengths[sample]])
    w1, w2 = policy.arrays["w1"], policy.arrays["w2"]
    torch_run = torch_gradient(x, actions[chosen], advantages, w1, w2)

    def sparse() -> None:
        learner.gradient[:] = 0
        network.policy_gradient(
            rollout.items, starts, lengths, actions, chosen, advantages, w1, w2,
            learner.gradients["w1"], learner.gradients["w2"],
        )  # fmt: skip

    def update() -> None:
        sparse()
        optimiser.rmsprop(policy.weights, learner.gradient, learner.cache, 0.0, 0.99, 1e-5)

    def dense_numpy() -> tuple[F32, F32]:
        return dense_gradient(x, actions[chosen], advantages, w1, w2)

    sparse()
    for reference in (dense_numpy, torch_run):
        for name, wanted in zip(("w1", "w2"), reference() if reference else (), strict=False):
            np.testing.assert_allclose(learner.gradients[name], wanted, rtol=1e-2, atol=1e-3 * np.abs(wanted).max())
    stages: dict[str, Any] = {"gradient": sparse, "update": update, "numpy": dense_numpy}
    if torch_run:
        stages["torch"] = torch_run
    times: dict[str, list[float]] = {name: [] for name in stages}
    for number in range(rounds + 1):
        for name, work in stages.items():
            start = time.perf_counter()
            work()
            if number:
                times[name].append(1e6 * (time.perf_counter() - start) / samples)
    results: dict[str, Any] = {"non_zeros": float(lengths[chosen].mean())}
    for name, values in times.items():
        results[name] = {"us": statistics.median(values)}
        if name in ("numpy", "torch"):
            ratios = [b / a for a, b in zip(times["gradient"], values, strict=True)]
            results[name] |= {"ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
    return results


def main() -> None:
    """Measure in one process for each number of threads, which is fixed when NumPy loads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--hidden", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    threads = os.environ.get("FASTPONG_BENCH_THREADS")
    if threads:
        print(json.dumps(measure(arguments.samples, arguments.hidden, arguments.rounds)))
        return
    results = {}
    for count in (1, len(os.sched_getaffinity(0))):
        environment = {**os.environ, "FASTPONG_BENCH_THREADS": "1"}
        environment |= {name: str(count) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        done = subprocess.run([sys.executable, *sys.argv], env=environment, capture_output=True, text=True, check=True)
        results[str(count)] = json.loads(done.stdout)
    if arguments.json:
        print(json.dumps(results))
        return
    print(f"{arguments.samples} samples, {arguments.hidden} hidden units; µs per sample, one thread for what is sparse")
    for threads, r in results.items():
        ours = f"gradient {r['gradient']['us']:.2f}, update {r['update']['us']:.2f}"
        print(f"{ours}; {r['non_zeros']:.0f} non-zeros a sample")
        for name in sorted(r.keys() & {"numpy", "torch"}):
            dense = r[name]
            print(
                f"  dense {name} with {threads} threads: gradient {dense['us']:.1f}, "
                f"{dense['ratio']:.0f} times as much ({dense['low']:.0f} … {dense['high']:.0f})"
            )


if __name__ == "__main__":
    main()
