"""The learner of preset fast: µs per sample and epoch, by stage, and against dense NumPy and PyTorch (if installed).

    python bench/learner.py [--hidden 64 192] [--skip 0] [--rounds 7] [--json]

The samples are steps of 64 real games with drawn actions, after the first `--skip` steps of each: the longer they have
played, the less alike they are. *update* is a whole `PPO.learn` over 64 × 128 steps: the list of views, all passes, the
optimiser and the bookkeeping, divided by samples and passes; with one thread and with one per core (at most two). The
stages are those of minibatches, both halves one after the other, on one thread. The dense gradient is the same one
(checked), for 128 samples, with one BLAS thread. Medians of rounds in turns.
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


def played(hidden: int, skip: int) -> Any:
    """Play 64 games until a batch is complete, and return the trainer; its games are closed."""
    from fastpong.config import make_config
    from fastpong.games import Games
    from fastpong.trainer import Trainer

    config = make_config("fast", {"hidden": hidden, "held_steps": 0, "kl": 0.0})  # all passes, over all steps
    with Games(config.envs, None, 1, actions=config.actions) as games:
        trainer = Trainer(config, games)
        trainer.start()
        for _ in range(skip):
            trainer.advance()
            trainer.rollout.begins[:] = trainer.rollout.rows - 1
            trainer.rollout.drop_used()
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


def first_pass(trainer: Any) -> tuple[Any, ...]:
    """Learn from the batch once, and return the arguments of `passes.half_of_pass` in its first pass."""
    from fastpong.kernels import passes as over_batch

    passes: Any = over_batch
    given: list[tuple[Any, ...]] = []
    kernel = passes.half_of_pass

    def note(*arguments: Any) -> Any:
        if not given:
            over = arguments[5]
            kept = over._replace(
                places=over.places.copy(), bounds=over.bounds.copy(), rows=tuple(rows.copy() for rows in over.rows),
                kinds=tuple(kinds.copy() for kinds in over.kinds),
            )  # fmt: skip
            given.append((*arguments[:5], kept, *arguments[6:]))
        return kernel(*arguments)

    passes.half_of_pass = note
    try:
        trainer.learner.learn(trainer.rollout, trainer.tally)
    finally:
        passes.half_of_pass = kernel
    return given[0]


def measure(hidden: int, skip: int, rounds: int) -> dict[str, Any]:
    """Measure all of it for one width."""
    from fastpong.cores import usable_cores
    from fastpong.kernels import convolution as conv
    from fastpong.kernels import optimiser as adam
    from fastpong.kernels import passes as over_batch
    from fastpong.kernels.meeting import ALONE
    from fastpong.kernels.ppo import clipped_gradient
    from fastpong.kernels.sites import deal
    from fastpong.minibatch import views_of

    passes: Any = over_batch  # its arguments are unpacked from lists, and some of its parts are used alone
    optimiser: Any = adam
    trainer = played(hidden, skip)
    rollout, learner, config = trainer.rollout, trainer.learner, trainer.config
    arrays, begin = trainer.policy.arrays, int(rollout.begins[0])
    arrays["w1"][conv.FACTS + 1 :] = 0.0
    before = trainer.policy.weights.copy()
    pools = {1: None, min(2, usable_cores()): learner.adam.pool}
    learner.adam.pool = None
    arguments = first_pass(trainer)
    views, over, steps, games, past = arguments[4:9]
    objective, weights, gradients, touched, sums, settings = arguments[9:]
    settings = settings._replace(apply=False)
    trainer.policy.weights[:] = before
    rng, samples = np.random.default_rng(0), over.samples[over.ends[0] : over.ends[1]]
    for name in ("advantages", "targets"):
        array = getattr(steps, name)
        array[:] = rng.standard_normal(len(array)).astype(np.float32)
    steps.importance[:] = 1.0
    place, minibatches = np.zeros((2, 8), np.int64), len(over.ends) - 1

    few = samples[:128]
    dense = Dense(arrays, images_of(rollout, few, config.frames))
    picked: Any = [steps.actions[few].astype(np.int64), *(getattr(steps, name)[few] for name in (
        "log_probs", "advantages", "targets"))]  # fmt: skip

    def densely() -> tuple[F32, F32, F32]:
        return dense.gradient(lambda outputs: slopes_of(config, outputs, *picked))

    listed = over.picks[:128]
    places = np.full(len(over.places), -1)
    places[listed] = np.arange(128)
    part = over._replace(
        picks=listed, ends=np.array([0, 128]), scales=np.full(1, 1 / 128), samples=few, places=places,
        bounds=np.zeros((2, over.bounds.shape[1]), np.int32), rows=tuple(rows.copy() for rows in over.rows),
        kinds=tuple(kinds.copy() for kinds in over.kinds),
    )  # fmt: skip
    passes.half_of_pass(
        ALONE, place, 0, 1, views, part, steps, games, past, objective, weights, gradients, touched, sums, settings
    )
    found = [one + two for one, two in zip(*gradients, strict=True)]
    for mine, wanted in zip(
        (found[0].reshape(-1, 64), found[2][: conv.FACTS], found[3][:, :-1]), densely(), strict=True
    ):
        np.testing.assert_allclose(mine, wanted, atol=2e-3 * np.abs(wanted).max())
    torch_run = torch_gradient(dense, rng.standard_normal((len(few), config.actions + 1), np.float32))

    rooms = [passes._room_of(views[half], weights) for half in (0, 1)]
    rates, room = optimiser.rates_of(0.0, 0.9, 0.999, 1e-5, 9), over
    means: Any = [np.zeros(arrays["w1"].size, np.float32) for _ in range(3)]
    shown = np.arange(begin * games, rollout.rows * games)

    def in_turns(work: Any, *arguments: Any) -> None:
        for own in zip(*arguments, strict=True):
            work(*own)

    def deal_all() -> None:
        for half in (0, 1):
            deal(views[half], room.places, room.bounds, room.rows[half], room.kinds[half])

    def contribute() -> None:
        for b in range(minibatches):
            for half in (0, 1):
                passes._contribute(half, b, rooms[half], views[half], room, weights)

    def outputs() -> None:
        for b in range(minibatches):
            chosen = over.samples[over.ends[b] : over.ends[b + 1]]
            hidden = passes._complete(
                slice(0, len(chosen)), chosen, steps.ages, steps.actions, games, past, config.actions, room, weights.w1
            )
            clipped_gradient(
                hidden, chosen, steps, weights.w2, objective, over.scales[b], gradients[0].w2,
                room.grad_hidden[: len(chosen)], sums[0],
            )  # fmt: skip
            conv.facts_gradient(
                steps.ages, steps.actions, games, chosen, past, config.actions, room.grad_hidden[: len(chosen)],
                gradients[0].w1,
            )  # fmt: skip

    def go_back() -> None:
        for b in range(minibatches):
            for half in (0, 1):
                passes._go_back(half, b, rooms[half], views[half], room, weights, gradients, touched, settings, rates)

    def gradient() -> None:
        for b in range(minibatches):
            passes.half_of_pass(
                ALONE, place, b, b + 1, views, room, steps, games, past, objective, weights, gradients, touched, sums,
                settings,
            )  # fmt: skip

    stages: dict[str, tuple[Callable[[], Any], int]] = {
        "list of views, once for all passes": (lambda: views_of(rollout, shown, config.frames, in_turns), len(shown)),
        "dealing to minibatches": (deal_all, len(over.picks)),
        "channels and what sites contribute": (contribute, len(over.picks)),
        "outputs and their gradient": (outputs, len(over.picks)),
        "gradient of sites and channels": (go_back, len(over.picks)),
        "all of the gradient": (gradient, len(over.picks)),
        "Adam": (
            lambda: optimiser.adam(arrays["w1"].reshape(-1), *means, rates), config.minibatch
        ),
    }  # fmt: skip

    def update() -> None:
        rollout.begins[:] = begin
        learner.learn(rollout, trainer.tally)

    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        now = {name: 1e6 * timed(work) / size for name, (work, size) in stages.items()}
        for threads, pool in pools.items():
            learner.adam.pool = pool
            threaded = f"update, {threads} thread{'s' * (threads > 1)}"
            now[threaded] = 1e6 * timed(update) / len(over.picks) / config.epochs
        now["dense NumPy"] = 1e6 * timed(densely) / len(few)
        if torch_run:
            now["PyTorch"] = 1e6 * timed(torch_run) / len(few)
        for name, value in now.items():
            times.setdefault(name, []).extend([value] * (number > 0))
    results: dict[str, Any] = {name: statistics.median(all_of) for name, all_of in times.items()}
    ratios = [b / a for a, b in zip(times["all of the gradient"], times["dense NumPy"], strict=True)]
    count = len(over.samples)
    alike = sum(
        len(np.unique(over.kinds[half][over.bounds[b, s] : over.bounds[b + 1, s]]))
        for b in range(minibatches) for half in (0, 1) for s in range(views[half].first, views[half].last)
    )  # fmt: skip
    return {
        **results, "dense / sparse": statistics.median(ratios),
        "sites a sample": sum(len(half.kinds) for half in views) / len(shown),
        "… that differ in a minibatch": alike / count,
        "views in the batch, both halves": sum(len(half.bounds) - 1 for half in views),
    }  # fmt: skip


def main() -> None:
    """Measure each width."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        if os.environ.get(name) != "1":  # is read when NumPy loads
            os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **dict.fromkeys(
                ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")})  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 192])
    parser.add_argument("--skip", type=int, default=0, help="steps of each game before those that are learned from")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {hidden: measure(hidden, arguments.skip, arguments.rounds) for hidden in arguments.hidden}
    if arguments.json:
        print(json.dumps(results))
        return
    print("| µs per sample and epoch | " + " | ".join(f"{hidden} hidden units" for hidden in results) + " |")
    print("|---" * (len(results) + 1) + "|")
    for name in next(iter(results.values())):
        print(f"| {name} | " + " | ".join(f"{result[name]:.2f}" for result in results.values()) + " |")


if __name__ == "__main__":
    main()
