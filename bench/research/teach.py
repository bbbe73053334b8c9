"""Teach an agent what was planned, by behaviour cloning.

    python -m bench.research.teach LESSONS OUT [--agent FILE] [--batches 400]

``LESSONS`` is what `plan.py` wrote. A quarter of the games begin where a lesson does: in most steps they take
an action that is best there, otherwise the one that the agent samples, and the agent learns the best ones by
cross-entropy. Where its own likeliest action is as good as the best it is the one to learn. The other games are played
by the agent as it was, and it learns to do the same; but not while a lesson would apply. In some lanes it begins the
points by itself, and what the plan says that it loses by its actions is what its beginnings fall short of the plan.
Prints that now and then.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import parser
from bench.research.lanes import Lanes, load_policy
from bench.research.plan import BEGINS, SCORE_ROWS, STEPS
from bench.research.planning import Node
from fastpong.arrays import F32
from fastpong.kernels import epochs
from fastpong.kernels.buckets import bucket_by_minibatch
from fastpong.kernels.conv import finish_hidden, prefix_sums, side_rows
from fastpong.kernels.patches import PARTS, POSITIONS
from fastpong.kernels.structs import Epoch, Loss, Network, Transitions
from fastpong.learners.ppo import VALUE_COEF
from fastpong.learners.threads import Threads, learner_threads
from fastpong.learners.updater import Epochs, Samples, Updater
from fastpong.parallel.comm import Serial
from fastpong.policy import ConvPolicy
from fastpong.runs.checkpoint import load
from fastpong.runs.find import SHIPPED

GUIDED = 0.75
"""In how many steps a taught lane takes the best action."""

ALIKE = 0.004
"""Actions whose values differ by less are as good as each other."""

STAKE = 0.1
"""Actions by which less is lost count less, in proportion."""

LEAST_STAKE = 0.05

EPOCHS = 4
"""Over a batch; the clip of PPO bounds how far that goes."""

MINIBATCH = 1024
"""Samples of a minibatch, at most."""


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
        self, before: ConvPolicy, student: ConvPolicy, lessons: list[Beginning], seed: int, lanes: Sequence[int]
    ):
        self.taught, self.begun = lanes[0], lanes[0] + lanes[1]
        self.lessons, self.before, self.student = lessons, before, student
        self.lanes = Lanes(student.config, sum(lanes), seed)
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

    def step(self) -> F32:
        """Take a step in all lanes and return how much each action taken is to be learned, float32 (lanes,)."""
        lanes, rollout = self.lanes, self.lanes.rollout
        row = lanes.observe()
        likeliest = lanes.act(self.student, row, lanes.all, self.steps)
        as_before = lanes.act(self.before, row, self.games, self.steps)
        choices = lanes.act(self.student, row, lanes.all, self.steps, greedy=False)  # whose values are kept
        weights, skipping = np.zeros(len(lanes.all), np.float32), np.array(self.skipping)[self.games]
        choices[self.games] = np.where(skipping, likeliest[self.games], as_before)
        seen = rollout.arrays.steps_since_reset[row] >= rollout.history
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
        rollout.arrays.actions[row] = choices
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


def log_probabilities(epoch: Epoch, network: Network) -> F32:
    """Return those of all actions, float32 (samples, actions), of an epoch whose samples are in order."""
    rows = []
    bucket_by_minibatch(epoch.patches, epoch.slots, epoch.buckets, 0, POSITIONS)
    work, sums = epochs.new_workspace(epoch.patches, network), prefix_sums(network.kernel)
    for b in range(len(epoch.scales)):
        part = epoch.samples[epoch.offsets[b] : epoch.offsets[b + 1]]
        totals = np.zeros((1, len(part), network.w1.shape[1]), np.int32)
        for share in range(PARTS):
            epochs.add_part(share, b, sums, work, epoch, network, totals[0])
        hidden = finish_hidden(totals, 0, len(part), *side_rows(epoch.inputs, part), network.w1)
        logits = hidden @ network.w2[:-1, :-1].T + network.w2[:-1, -1]
        rows.append(logits - np.logaddexp.reduce(logits, 1, keepdims=True))
    return np.concatenate(rows)


def learn(
    updater: Updater, threads: Threads, student: ConvPolicy, lanes: Lanes, weights: F32, rate: float,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Learn from the rows that were not used yet; `weights` float32 (rows, lanes) says how much each action counts."""
    rollout, config, network = lanes.rollout, student.config, student.net.network
    begin, end = int(rollout.first_unused[0]) * rollout.num_envs, rollout.rows * rollout.num_envs
    samples, arrays = Samples(rollout.inputs, np.arange(begin, end), threads), rollout.inputs.arrays
    actions, counts, index = arrays.actions[begin:end], weights.reshape(-1), np.arange(end - begin)
    log_probs: F32 = np.zeros(len(index), np.float32)
    transitions = Transitions(actions, log_probs, counts, arrays.values[begin:end])
    loss = Loss(config.clip_low, config.clip_high, 0.0, VALUE_COEF, 0.0)
    everything = Epochs(samples, transitions, loss, index, MINIBATCH, config.hidden_units)
    log_probs[:] = log_probabilities(everything.shuffled(index), network)[index, actions]
    ids = np.where(counts > 0, index, -1)
    chosen = Epochs(samples, transitions, loss, ids, MINIBATCH, config.hidden_units)
    for _ in range(EPOCHS):
        updater.run(chosen.shuffled(rng.permutation(len(ids))), rate)
    rollout.release(rollout.rows)


def main() -> None:
    """Teach and write."""
    options = parser(__doc__)
    options.add_argument("lessons", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--agent", type=Path, default=SHIPPED)
    options.add_argument("--student", type=Path, help="with what it begins to learn, if not with the agent's weights")
    options.add_argument("--batches", type=int, default=400)
    options.add_argument("--rate", type=float, default=2e-4)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument(
        "--lanes", type=int, nargs=3, default=[32, 8, 80], help="taught, examined, and played by the agent as it was"
    )
    a = options.parse_args()
    lessons = [Beginning(path) for path in sorted(a.lessons.glob("lessons-*.npz"))]
    if not lessons:
        options.error(f"there is no lessons-*.npz in {a.lessons}: python -m bench.research.plan {a.lessons} makes them")
    before, student = load_policy(a.agent), load_policy(a.student or a.agent)
    threads, rng = Threads(learner_threads(Serial())), np.random.default_rng(a.seed)
    updater, room = Updater(student.net, Serial(), threads), Class(before, student, lessons, a.seed, a.lanes)
    mean = {name: np.zeros(array.shape) for name, array in student.net.arrays.items()}
    averaged = 0
    for batch in range(a.batches):
        rows = np.stack([room.step() for _ in range(32)])
        learn(updater, threads, student, room.lanes, rows, a.rate * (1.0 - batch / a.batches), rng)
        if batch >= 0.75 * a.batches:
            averaged += 1
            for name, array in student.net.arrays.items():
                mean[name] += array
        if batch % 25 == 24:
            short = {i: float(np.mean(losses)) for i, losses in room.losses.items() if losses}
            print(f"batch {batch + 1}: begins short of the plan by", *(f"{s:.4f}" for s in short.values()), flush=True)
            room.losses = {i: [] for i in room.losses}
    state: dict[str, Any] = {f"policy.{name}": (array / averaged).astype(np.float16) for name, array in mean.items()}
    about = {**load(a.agent)[1], "taught": {"lessons": len(lessons), "batches": a.batches, "rate": a.rate}}
    np.savez_compressed(a.out, about=np.array(json.dumps(about)), **state)
    threads.close()


if __name__ == "__main__":
    main()
