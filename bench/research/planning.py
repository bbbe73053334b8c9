"""Backward induction from a saved state of a game, knowing the emulator and the noise but neither ball nor paddle.

Pong has no randomness but sticky actions, and a sticky action has only a few outcomes: in the first 0 … `frame_skip`
frames of a step the action before is repeated, then the new one is held. So from a saved moment on all that can happen
is a finite tree; and since most ways of holding a paddle still lead to the same state of the emulator, its nodes that
agree in every byte are one. The values of the leaves come from playing on with the agent; the rest is expectimax, by
backward induction (Puterman, "Markov decision processes", 1994, chapter 4). To learn from a planner that knows the
emulator how to play from pixels is the way of Guo et al., "Deep learning for real-time Atari game play using offline
Monte-Carlo tree search planning", 2014.
"""

import functools
import hashlib
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from ale_py import Action, ALEInterface, ALEState

from fastpong.envs.ale import ACTIONS, new_emulator

Key = bytes
Worth = tuple[float, ...]
"""What each action is worth."""


class Node(NamedTuple):
    """A state of a game: the emulator's, serialized, and the action (its number) that a sticky one would repeat."""

    state: bytes
    held: int

    def key(self) -> Key:
        """Return what tells it from all others."""
        return hashlib.blake2b(self.state + bytes([self.held]), digest_size=10).digest()


class Outcome(NamedTuple):
    """Where an action may lead."""

    chance: float
    key: Key | None
    """Of the node, or None if the point is over."""
    reward: int


Choices = tuple[tuple[Outcome, ...], ...]
"""The outcomes of each action 0 (up), 1 (down), 2 (no-op)."""


@dataclass(frozen=True)
class Tree:
    """All that can happen from a moment on, for a number of steps.

    Attributes
    ----------
    root : bytes
        Key of the first node.
    choices : list of dict
        For each step, the outcomes of each action by the key of the node; the first has one node, the root.
    leaves : dict
        By key, the nodes after the last step, each with its screen (compressed).
    """

    root: Key
    choices: list[dict[Key, Choices]]
    leaves: dict[Key, tuple[Node, bytes]]


@functools.cache
def _emulator_here() -> ALEInterface:
    """Return the one of this process."""
    emulator = new_emulator()
    emulator.reset_game()
    return emulator


def chances_of(sticky: float, frame_skip: int) -> tuple[float, ...]:
    """Return the probability that the action before is repeated in the first 0 … `frame_skip` frames of a step."""
    return (*((1.0 - sticky) * sticky**frames for frames in range(frame_skip)), sticky**frame_skip)


def expand(
    nodes: Sequence[Node], sticky: float, frame_skip: int, screens: bool
) -> tuple[dict[Key, Choices], dict[Key, tuple[Node, bytes]]]:
    """Take every action from every node, with every outcome of the noise.

    Returns
    -------
    (choices, reached)
        The outcomes by the node's key, and the nodes that they lead to by theirs, with their screens if `screens`.
    """
    emulator = _emulator_here()
    act, chances = emulator.act, chances_of(sticky, frame_skip)
    choices: dict[Key, Choices] = {}
    reached: dict[Key, tuple[Node, bytes]] = {}
    for node in nodes:
        before, held = ALEState(node.state), Action(node.held)
        known: dict[tuple[Action, int], tuple[Key | None, int]] = {}
        rows = []
        for action in ACTIONS:
            row = []
            # To hold on what is held is the same whether it is chosen or repeated.
            for repeated, chance in enumerate(chances) if action != held else [(frame_skip, 1.0)]:
                way = (action, repeated) if repeated < frame_skip else (held, frame_skip)
                if way not in known:
                    emulator.restoreState(before)
                    reward = sum(act(held) for _ in range(repeated))
                    reward += sum(act(action) for _ in range(frame_skip - repeated))
                    key = None
                    if not reward and not emulator.game_over():
                        state = emulator.cloneState(include_rng=False).serialize()
                        there = Node(state, (action if repeated < frame_skip else held).value)
                        key = there.key()
                        if key not in reached:
                            screen = zlib.compress(emulator.getScreen().tobytes(), 1) if screens else b""
                            reached[key] = there, screen
                    known[way] = key, reward
                row.append(Outcome(chance, *known[way]))
            rows.append(tuple(row))
        choices[node.key()] = tuple(rows)
    return choices, reached


def tree_of(root: Node, steps: int, pool: Any, sticky: float = 0.25, frame_skip: int = 4) -> Tree:
    """Return all that can happen within some steps; `pool` is a `multiprocessing.Pool`."""
    layer, choices = {root.key(): (root, b"")}, []
    for left in range(steps - 1, -1, -1):
        nodes = [node for node, _ in layer.values()]
        tasks = [(nodes[i::16], sticky, frame_skip, left == 0) for i in range(16)]
        layer, step = {}, {}
        for more, reached in pool.starmap(expand, tasks, chunksize=1):
            step.update(more)
            layer.update(reached)
        choices.append(step)
    return Tree(root.key(), choices, layer)


def solve(tree: Tree, leaves: Mapping[Key, float]) -> tuple[float, dict[Key, Worth]]:
    """Return the value of the root, and that of each action at each node, if all that comes after is done best.

    Values are expected rewards, −1 … 1: 2 · (probability of winning the point) − 1. `leaves` has those of the leaves.
    """
    values: dict[Key, float] = dict(leaves)
    actions: dict[Key, Worth] = {}
    for step in reversed(tree.choices):
        for key, choices in step.items():
            worth: Worth = tuple(
                sum(o.chance * (o.reward if o.key is None else values[o.key]) for o in outcomes) for outcomes in choices
            )
            actions[key], values[key] = worth, max(worth)
    return values[tree.root], actions


def reach_of(tree: Tree, actions: Mapping[Key, Worth], blunders: float) -> dict[Key, float]:
    """Return how probable each leaf is if the best action is taken, but with a probability `blunders` any."""
    layer = {tree.root: 1.0}
    for step in tree.choices:
        after: dict[Key, float] = defaultdict(float)
        for key, chance in layer.items():
            best = int(np.argmax(actions[key]))
            for action, outcomes in enumerate(step[key]):
                share = blunders / len(ACTIONS) + (1.0 - blunders) * (action == best)
                for outcome in outcomes:
                    if outcome.key is not None:
                        after[outcome.key] += chance * share * outcome.chance
        layer = after
    return layer
