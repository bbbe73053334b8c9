"""What actors on a Ray cluster cost on one machine: steps per second, and where the seconds of a batch go.

    python -m bench.ray_scaling [--actors 1 2 4] [--rounds 5] [--batches 5]

Each round trains preset fast from its start with the envs in subprocesses here (a worker per core), the same beside a
Ray that has nothing to do, in each number of Ray actors, and on two MPI ranks, in turns; the first three batches do
not count. Prints a Markdown table of medians:

- steps/s, and its ratio to the envs here in the same round;
- seconds of a batch in which the slowest actor plays, experience and weights travel, and this process learns;
- seconds that Ray and its actors take to start, and MiB of memory that they take before they have envs.

A second table has the seconds a batch in which weights go to more actors than there are cores, and as many bytes come
back as a batch of theirs would have, while nobody plays. All of them share the cores here, so a cluster is faster. A
third one is computed from both, see docs/scaling.md; it needs 1 among --actors.
"""

import contextlib
import functools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.common import parser, timed, train_on_ranks
from bench.ranks import launcher
from fastpong.arrays import F32
from fastpong.config import Config, make_config
from fastpong.envs.vector_env import VectorEnv
from fastpong.learners.ppo import PPO
from fastpong.parallel.ray import Cluster, Placing, versions
from fastpong.parallel.replaced import Losses
from fastpong.policy import make_policy
from fastpong.training.actor import Actor, Sampler
from fastpong.training.remote import RayActor, RaySampler
from fastpong.training.trainer import Trainer
from fastpong.training.warm_up import load_acting, load_learning

BYTES_A_STEP = 70
"""What a step of an env takes in `fastpong.rollout.buffer.Rollout.tail`, about."""


def batches(sampler: Sampler, config: Config, count: int) -> dict[str, float]:
    """Train for three batches, then for `count` more; return steps/s, and seconds a batch of each part of the work."""
    trainer = Trainer(config, sampler)
    with contextlib.closing(trainer):
        trainer.start()
        for number in range(count + 3):
            while True:
                trainer.step(trainer.steps_until(float("inf")))
                if trainer.learn_if_due():
                    break
            if number == 2:
                began, before = time.perf_counter(), dict(sampler.seconds)
        seconds = time.perf_counter() - began
    parts = {name: (spent - before[name]) / count for name, spent in sampler.seconds.items()}
    return {"speed": count * config.batch_size / seconds, "batch": seconds / count, **parts}


def measure_here(config: Config, count: int) -> dict[str, float]:
    """Measure with the envs in subprocesses of this process."""
    with VectorEnv.of(config) as envs:
        return batches(Actor(config, envs), config, count)


def available() -> float:
    """Return the MiB of memory that are free or can be freed."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    return int(line.split()[1]) / 1024


def measure_beside(config: Config, count: int) -> dict[str, float]:
    """Measure the envs here while a Ray with one actor waits."""
    memory = available()
    with Cluster(RayActor, Placing(actors=1), config.num_envs):
        return {"memory": memory - available(), **measure_here(config, count)}


def measure_actors(actors: int, config: Config, count: int) -> dict[str, float]:
    """Measure with the envs in Ray actors."""
    began = time.perf_counter()
    with Cluster(RayActor, Placing(actors=actors), config.num_envs) as cluster:
        start = time.perf_counter() - began
        return {"start": start, **batches(RaySampler(config, cluster, Losses(print)), config, count)}


class Echo:
    """An actor that does not play: it answers at once."""

    def versions(self) -> dict[str, str]:
        """See `fastpong.parallel.ray.versions`."""
        return versions()

    def play(self, weights: F32, size: int) -> npt.NDArray[np.uint8]:
        """Return so many bytes."""
        return np.ones(size, np.uint8)


def travelling(actors: int, config: Config) -> float:
    """Return the median seconds a batch in which weights and the bytes of its experience travel."""
    weights, asks = make_policy(config).weights.flat, config.rollout_steps // PPO.synchronise_every
    size = BYTES_A_STEP * config.batch_size // asks // actors
    with Cluster(Echo, Placing(actors=actors), actors) as cluster:

        def batch() -> None:
            shared = cluster.put(weights)
            for _ in range(asks):
                for answer in [member.play.remote(shared, size) for member in cluster.members]:
                    cluster.result(answer)

        return statistics.median(timed(batch) for _ in range(20))


def main() -> None:
    """Measure in turns and print the tables."""
    options_of = parser(__doc__)
    options_of.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4])
    options_of.add_argument("--rounds", type=int, default=5)
    options_of.add_argument("--batches", type=int, default=5)
    arguments = options_of.parse_args()
    config = make_config("fast", {"exploring_start_steps": 0})
    load_acting(config)
    load_learning(config)
    kinds: dict[str, Callable[[], dict[str, float]]] = {
        "here": lambda: measure_here(config, arguments.batches),
        "here, Ray idle": lambda: measure_beside(config, arguments.batches),
    }
    for actors in arguments.actors:
        kinds[f"{actors} actor{'s' * (actors > 1)}"] = functools.partial(
            measure_actors, actors, config, arguments.batches
        )
    steps = (arguments.batches + 1) * config.batch_size + config.num_envs
    kinds["2 ranks"] = lambda: {"speed": train_on_ranks(launcher(2), steps, ["exploring_start_steps=0"])["speed"]}
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind, measure in kinds.items():
            rounds[kind].append(measure())
            print(kind, rounds[kind][-1], file=sys.stderr, flush=True)
    heads = "envs", "steps/s", "to those here, same round", "s a batch", "playing", "travelling", "learning", "start, s"
    print(f"| {' | '.join(heads)} | MiB |\n|{'---|' * (len(heads) + 1)}")
    for kind, results in rounds.items():

        def median(name: str, results: list[dict[str, float]] = results) -> str:
            values = [result[name] for result in results if name in result]
            return f"{statistics.median(values):.3g}" if values else "–"

        pairs = zip(results, rounds["here"], strict=True)
        ratio = statistics.median(result["speed"] / here["speed"] for result, here in pairs)
        cells = [median(name) for name in ("batch", "play", "travel", "update", "start", "memory")]
        speed = statistics.median(result["speed"] for result in results)
        print(f"| {kind} | {speed:.0f} | {ratio:.2f} | {' | '.join(cells)} |")
    alone = {actors: travelling(actors, config) for actors in (1, 2, 4, 8, 16, 32)}
    print("\n| actors | travelling alone, s a batch |\n|---|---|")
    for actors, seconds in alone.items():
        print(f"| {actors} | {seconds:.4f} |")
    print("\n| cores | s a batch | steps/s |\n|---|---|---|")
    play, learn = (statistics.median(result[part] for result in rounds["1 actor"]) for part in ("play", "update"))
    for cores in (16, 64, 256):
        seconds = play / cores + alone[32] / 32 * cores + learn
        print(f"| {cores} | {seconds:.2f} | {config.batch_size / seconds:.0f} |")


if __name__ == "__main__":
    main()
