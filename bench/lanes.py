"""Some games in one process, which can be put to any moment: for what plans and teaches."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ale_py import ALEState

from bench.planning import Node
from fastpong.config import Config
from fastpong.kernels.images import as_words
from fastpong.pong import ACTIONS, SCREEN, new_emulator
from fastpong.rollout import Rollout


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
        self.rollout = Rollout(config, count)
        self.emulators = [new_emulator() for _ in range(count)]
        for emulator in self.emulators:
            emulator.reset_game()
        self.screens = np.zeros((count, *SCREEN), np.uint8)
        self.ended = np.ones(count, np.int8)
        self.all = np.arange(count)
        first = self.emulators[0]
        self.first = Node(first.cloneState(include_rng=False).serialize(), ACTIONS[2].value), first.getScreen()
        self.held = [ACTIONS[2]] * count
        for lane in range(count):
            self.put(lane, *self.first)

    def put(self, lane: int, node: Node, screen: npt.NDArray[np.uint8]) -> None:
        """Put an emulator to a node, which shows `screen` uint8 (210, 160)."""
        self.emulators[lane].restoreState(ALEState(node.state))
        self.held[lane] = type(ACTIONS[0])(node.held)
        self.screens[lane], self.ended[lane] = screen, 1

    def node(self, lane: int) -> Node:
        """Return where a lane is."""
        return Node(self.emulators[lane].cloneState(include_rng=False).serialize(), self.held[lane].value)

    def observe(self) -> int:
        """Preprocess the screens into a new row, in which no action is planned, and return its index."""
        row = self.rollout.new_row()
        self.rollout.observe(row, as_words(self.screens), self.all, self.all, self.ended)
        self.rollout.planned[row] = 0
        return row

    def step(self, choices: Sequence[int]) -> list[int]:
        """Take an action in each lane and return the rewards."""
        c, rewards = self.config, []
        repeats = (np.cumprod(self.rng.random((len(choices), c.frame_skip)) < c.sticky, axis=1)).sum(1)
        for lane, (choice, repeat) in enumerate(zip(choices, repeats, strict=True)):
            act, action, held = self.emulators[lane].act, ACTIONS[choice], self.held[lane]
            rewards.append(
                sum(act(held) for _ in range(repeat)) + sum(act(action) for _ in range(c.frame_skip - repeat))
            )
            if repeat < c.frame_skip:
                self.held[lane] = action
            self.emulators[lane].getScreen(self.screens[lane])
        self.ended[:] = 0
        return rewards
