"""Some envs in one process, which can be put to any saved state: for what plans and clones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ale_py import Action, ALEState

from bench.research.planning import Node
from fastpong.arrays import I64, U8, Arrays
from fastpong.config import Config, changed
from fastpong.courts import courts_of
from fastpong.envs.ale import ACTIONS, new_emulator
from fastpong.kernels.preprocess import observe
from fastpong.policy import ConvPolicy, make_policy
from fastpong.pong import SCREEN
from fastpong.runs.find import load_weights


def policy_of(config: Config) -> ConvPolicy:
    """Return a policy of preset ``fast`` with first weights, whose games have no exploring starts."""
    policy = make_policy(changed(config, {"exploring_start_steps": 0}))
    assert isinstance(policy, ConvPolicy)
    return policy


def load_policy(agent: Path) -> ConvPolicy:
    """Return the policy of an agent."""
    config, weights = load_weights(agent)
    policy = policy_of(config)
    policy.weights.load(weights)
    return policy


class Lanes:
    """Emulators side by side, and what they show as a policy sees it.

    Attributes
    ----------
    rollout : Rollout
        The steps so far; `observe` opens a row.
    screens : uint8 (lanes, 210, 160)
        Palette indices, what each emulator shows.
    held : list of Action
        What a sticky action would repeat in each.
    """

    def __init__(self, config: Config, count: int, seed: int):
        self.config, self.rng = config, np.random.default_rng(seed)
        self.rollout = policy_of(config).make_rollout(count)
        self.emulators = [new_emulator() for _ in range(count)]
        for emulator in self.emulators:
            emulator.reset_game()
        self.screens = np.zeros((count, *SCREEN), np.uint8)
        self.rewards, self.ended = np.zeros(count, np.int8), np.ones(count, np.int8)
        self.all = np.arange(count)
        first = self.emulators[0]
        self.first = Node(first.cloneState(include_rng=False).serialize(), ACTIONS[2].value), first.getScreen()
        self.held = [ACTIONS[2]] * count
        for lane in range(count):
            self.put(lane, *self.first)

    def put(self, lane: int, node: Node, screen: U8) -> None:
        """Put an emulator to a node, which shows `screen` uint8 (210, 160)."""
        self.emulators[lane].restoreState(ALEState(node.state))
        self.held[lane] = Action(node.held)
        self.screens[lane], self.ended[lane] = screen, 1

    def node(self, lane: int) -> Node:
        """Return where a lane is."""
        return Node(self.emulators[lane].cloneState(include_rng=False).serialize(), self.held[lane].value)

    def observe(self) -> int:
        """Preprocess the screens into a new row and return its index."""
        row = self.rollout.new_row()
        shown: Arrays = {"courts": courts_of(self.screens), "rewards": self.rewards, "ended": self.ended}
        self.rollout.record(row, observe(shown), self.all, self.all)
        return row

    def act(self, policy: ConvPolicy, row: int, members: I64, step: int, greedy: bool = True) -> U8:
        """Let a policy choose the actions of some lanes in the present row."""
        return policy.act(self.rollout.inputs, row * self.rollout.num_envs, members, step, greedy)

    def step(self, choices: Sequence[int]) -> list[int]:
        """Take an action in each lane and return the rewards."""
        c, rewards = self.config, []
        repeats = (np.cumprod(self.rng.random((len(choices), c.frame_skip)) < c.repeat_action_probability, axis=1)).sum(
            1
        )
        for lane, (choice, repeat) in enumerate(zip(choices, repeats, strict=True)):
            act, action, held = self.emulators[lane].act, ACTIONS[choice], self.held[lane]
            rewards.append(
                sum(act(held) for _ in range(repeat)) + sum(act(action) for _ in range(c.frame_skip - repeat))
            )
            if repeat < c.frame_skip:
                self.held[lane] = action
            self.emulators[lane].getScreen(self.screens[lane])
        self.rewards[:], self.ended[:] = rewards, 0
        return rewards
