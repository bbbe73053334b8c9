"""Forward and backward pass of one real batch: our sparse kernel against dense NumPy (BLAS).

    python bench/gradient.py [--samples 4096] [--hidden 200] [--rounds 7] [--json]

The samples are difference images of real games. NumPy gets its dense float32 matrix for free; it computes the same
gradient (checked), once with one BLAS thread and once with one per core. Medians of interleaved rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
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


def measure(samples: int, hidden: int, rounds: int) -> dict[str, Any]:
    """µs per sample of both, in turns, and the ratio within each round."""
    from fastpong.kernels import network
    from fastpong.kernels.images import dense

    learner, rollout, chosen = real_batch(samples, hidden)
    policy = learner.policy
    starts, lengths = rollout.starts.reshape(-1), rollout.lengths.reshape(-1)
    actions = rollout.actions.reshape(-1)
    advantages = np.random.default_rng(1).standard_normal(samples).astype(np.float32)
    x = np.zeros((samples, 6400), np.float32)
    for i, sample in enumerate(chosen):
        x[i] = dense(rollout.items[starts[sample] : starts[sample] + lengths[sample]])
    times: dict[str, list[float]] = {"sparse": [], "dense": []}
    for _ in range(rounds + 1):
        learner.gradient[:] = 0
        start = time.perf_counter()
        network.policy_gradient(
            rollout.items, starts, lengths, actions, chosen, advantages,
            policy.arrays["w1"], policy.arrays["w2"], learner.gradients["w1"], learner.gradients["w2"],
        )  # fmt: skip
        times["sparse"].append(time.perf_counter() - start)
        start = time.perf_counter()
        ref_w1, ref_w2 = dense_gradient(x, actions[chosen], advantages, policy.arrays["w1"], policy.arrays["w2"])
        times["dense"].append(time.perf_counter() - start)
    scale = np.abs(ref_w1).max()
    np.testing.assert_allclose(learner.gradients["w1"], ref_w1, atol=1e-3 * scale)
    np.testing.assert_allclose(learner.gradients["w2"], ref_w2, rtol=1e-2, atol=1e-3 * np.abs(ref_w2).max())
    per_sample = {name: [1e6 * t / samples for t in values[1:]] for name, values in times.items()}
    ratios = [b / a for a, b in zip(per_sample["sparse"], per_sample["dense"], strict=True)]
    return {
        "non_zeros": float(lengths[chosen].mean()),
        "sparse_us": statistics.median(per_sample["sparse"]),
        "dense_us": statistics.median(per_sample["dense"]),
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
    }


def main() -> None:
    """Measure in one process for each number of BLAS threads, which is fixed when NumPy loads."""
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
        results[f"{count} BLAS threads"] = json.loads(done.stdout)
    if arguments.json:
        print(json.dumps(results))
        return
    print(
        f"{arguments.samples} samples, {arguments.hidden} hidden units; µs per sample, one thread for the sparse kernel"
    )
    for name, r in results.items():
        print(
            f"dense NumPy with {name}: sparse {r['sparse_us']:.2f}, dense {r['dense_us']:.1f}, ratio {r['ratio']:.0f} "
            f"({r['ratio_low']:.0f} … {r['ratio_high']:.0f}); {r['non_zeros']:.0f} non-zeros a sample"
        )


if __name__ == "__main__":
    main()
