"""Teach an agent what was planned: python -m bench.teach LESSONS OUT [--agent FILE] [--batches 400].

``LESSONS`` is what ``bench.plan`` wrote. A quarter of the games begin where a lesson does: in most steps they take
an action that is best there, otherwise the one that the agent draws, and the agent learns the best ones by
cross-entropy. Where its own likeliest action is as good as the best it is the one to learn. The other games are played
by the agent as it was, and it learns to do the same; but not while a lesson would apply. In some lanes it begins the
points by itself, and what the plan says that it loses by its actions is what its beginnings fall short of the plan.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.lanes import Lanes
from bench.plan import BEGINS, SCORE_ROWS, STEPS
from bench.planning import Node
from fastpong.checkpoint import SHIPPED, load, load_weights
from fastpong.config import Config, changed
from fastpong.minibatch import Minibatches, views_of
from fastpong.policy import Policy, make_policy
from fastpong.ppo import PPO, Lesson

GUIDED = 0.75
"""In how many steps a taught lane takes the best action."""

ALIKE = 0.004
"""Actions whose values differ by less are as good as each other."""

STAKE = 0.1
"""Actions by which less is lost count less, in proportion."""

LEAST_STAKE = 0.05

PASSES = 4
"""How often a batch is gone over; the clip of PPO bounds how far that goes."""


class Beginning:
    """A beginning of a point that was planned.

    Attributes
    ----------
    node : Node
        Where it begins.
    screen : uint8 (210, 160)
        What is on the screen there.
    values : dict
        By the key of each node, what up, down and no-op are worth.
    """

    def __init__(self, path: Path):
        with np.load(path) as file:
            self.node = Node(file["state"].tobytes(), int(file["held"]))
            self.screen = file["screen"]
            keys, values = file["keys"], file["values"]
        self.values = {key.tobytes(): value for key, value in zip(keys, values, strict=True)}

    @property
    def picture(self) -> bytes:
        """What tells it from others on the screen."""
        return bytes(self.screen[SCORE_ROWS:])


class Class:
    """The lanes, and what there is to learn from them."""

    def __init__(
        self, config: Config, before: Policy, student: Policy, lessons: list[Beginning], seed: int, lanes: Sequence[int]
    ):
        self.taught, self.begun = lanes[0], lanes[0] + lanes[1]
        self.lessons, self.before, self.student = lessons, before, student
        self.lanes = Lanes(config, sum(lanes), seed)
        self.rng = np.random.default_rng(seed + 1)
        self.games = self.lanes.all[self.begun :]
        self.lesson: list[Beginning] = [lessons[0]] * (self.begun)
        self.pictures = {lesson.picture for lesson in lessons}
        self.ages = [0] * len(self.lanes.all)
        self.skipping = [False] * len(self.lanes.all)
        self.steps = 0
        self.lost = [0.0] * lanes[1]
        self.losses: dict[int, list[float]] = {i: [] for i in range(len(lessons))}
        for lane in range(self.begun):
            self._begin(lane)

    def _begin(self, lane: int) -> None:
        self.lesson[lane] = self.lessons[int(self.rng.integers(len(self.lessons)))]
        self.lanes.put(lane, self.lesson[lane].node, self.lesson[lane].screen)
        self.ages[lane] = 0

    def step(self) -> npt.NDArray[np.float32]:
        """Take a step in all lanes and return how much each action taken is to be learned, float32 (lanes,)."""
        lanes, rollout = self.lanes, self.lanes.rollout
        row = lanes.observe()
        self.student.act(rollout, row, lanes.all, self.steps, greedy=True)
        likeliest = rollout.actions[row].copy()
        self.student.act(rollout, row, lanes.all, self.steps)
        choices, weights = rollout.actions[row].copy(), np.zeros(len(lanes.all), np.float32)
        self.before.act(rollout, row, self.games, self.steps, greedy=True)
        skipping = np.array(self.skipping)[self.games]
        choices[self.games] = np.where(skipping, likeliest[self.games], rollout.actions[row, self.games])
        seen = rollout.ages[row] >= rollout.history
        for lane in range(self.begun):
            values = self.lesson[lane].values[lanes.node(lane).key()]
            best = float(values.max())
            if lane >= self.taught:
                choices[lane] = likeliest[lane]
                self.lost[lane - self.taught] += (best - float(values[choices[lane]])) / 2
            elif self.rng.random() < GUIDED:
                mine = int(likeliest[lane])
                choices[lane] = mine if best - values[mine] < ALIKE else int(values.argmax())
                if seen[lane] and best - values.min() >= ALIKE:
                    weights[lane] = np.clip((best - values.min()) / STAKE, LEAST_STAKE, 1.0)
        for lane in self.games:
            weights[lane] = seen[lane] and not self.skipping[lane]
        # So that log_probs are those of what is done.
        rollout.planned[row] = choices + 1
        self.student.act(rollout, row, lanes.all, self.steps)
        rollout.planned[row] = 0
        self._go_on(lanes.step(choices.tolist()))
        self.steps += 1
        return weights

    def _go_on(self, rewards: list[int]) -> None:
        lanes = self.lanes
        for lane, reward in enumerate(rewards):
            self.ages[lane] = 0 if reward else self.ages[lane] + 1
            if lane < self.begun:
                if reward or lanes.node(lane).key() not in self.lesson[lane].values:
                    if lane >= self.taught:
                        self.losses[self.lessons.index(self.lesson[lane])].append(self.lost[lane - self.taught])
                        self.lost[lane - self.taught] = 0.0
                    self._begin(lane)
            else:
                if self.ages[lane] == BEGINS:
                    self.skipping[lane] = lanes.screens[lane, SCORE_ROWS:].tobytes() in self.pictures
                elif self.ages[lane] == 0 or self.ages[lane] == BEGINS + STEPS:
                    self.skipping[lane] = False
                if lanes.emulators[lane].game_over():
                    lanes.put(lane, *lanes.first)
                    self.ages[lane] = 0


def learn(learner: PPO, lanes: Lanes, weights: npt.NDArray[np.float32], rate: float, rng: np.random.Generator) -> None:
    """Learn from the rows that were not used yet; `weights` float32 (rows, lanes) says how much each action counts."""
    rollout, count = lanes.rollout, lanes.rollout.games
    begin, end = int(rollout.begins[0]), rollout.rows
    counts = np.zeros((end, count), np.float32)
    counts[begin:] = weights
    steps = np.arange(begin * count, end * count)
    config = learner.config
    views = views_of(rollout, steps, config.frames, learner.adam.both)
    minibatches = Minibatches(
        views, steps, config.minibatch, -(-len(steps) // config.minibatch), config.hidden
    )  # fmt: skip
    learnable = (counts > 0).astype(np.float32)
    lesson = Lesson.of(
        rollout, minibatches, counts, rollout.values[:end].copy(), learnable, learner.games, config.envs, rate, 0.0
    )
    for _ in range(PASSES):
        learner.go_over(lesson, rng)
    rollout.begins[:] = end
    rollout.drop_used()


def main() -> None:
    """Teach and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--agent", type=Path, default=SHIPPED)
    parser.add_argument("--student", type=Path, help="with what it begins to learn, if not with the agent's weights")
    parser.add_argument("--batches", type=int, default=400)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--lanes", type=int, nargs=3, default=[32, 8, 80], help="taught, examined, and played by the agent as it was"
    )
    a = parser.parse_args()
    lessons = [Beginning(path) for path in sorted(a.lessons.glob("lessons-*.npz"))]
    if not lessons:
        parser.error(f"there is no lessons-*.npz in {a.lessons}: python -m bench.plan {a.lessons} makes them")
    config, weights = load_weights(a.agent)
    count = sum(a.lanes)
    config = changed(config, {"envs": count, "pass_share": 1.0, "critic": 0, "minibatch": 1024})
    before, student = make_policy(config), make_policy(config)
    before.load_state(weights)
    student.load_state(load_weights(a.student or a.agent)[1])
    learner, room, rng = (
        PPO(config, student),
        Class(config, before, student, lessons, a.seed, a.lanes),
        np.random.default_rng(a.seed),
    )
    mean = {name: np.zeros(array.shape) for name, array in student.arrays.items()}
    averaged = 0
    for batch in range(a.batches):
        rows = np.stack([room.step() for _ in range(32)])
        learn(learner, room.lanes, rows, a.rate * (1.0 - batch / a.batches), rng)
        if batch >= 0.75 * a.batches:
            averaged += 1
            for name, array in student.arrays.items():
                mean[name] += array
        if batch % 25 == 24:
            short = {i: float(np.mean(losses)) for i, losses in room.losses.items() if losses}
            print(f"batch {batch + 1}: begins short of the plan by", *(f"{s:.4f}" for s in short.values()), flush=True)
            room.losses = {i: [] for i in room.losses}
    state: dict[str, Any] = {f"policy.{name}": (array / averaged).astype(np.float16) for name, array in mean.items()}
    about = {**load(a.agent)[1], "taught": {"lessons": len(lessons), "batches": a.batches, "rate": a.rate}}
    np.savez_compressed(a.out, about=np.array(json.dumps(about)), **state)
    learner.close()


if __name__ == "__main__":
    main()
