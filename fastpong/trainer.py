"""Playing all games, and learning from them: the core of training and evaluation, without files."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.games import Games
from fastpong.kernels.images import as_words
from fastpong.policy import make_policy
from fastpong.ppo import PPO
from fastpong.reinforce import Reinforce
from fastpong.rollout import Rollout
from fastpong.tally import Tally

STAGES = ("wait", "observe", "act", "send", "record", "learn")


class Player:
    """Plays all games in lockstep.

    Parameters
    ----------
    config : Config
        The run's settings.
    games : Games
        Not started yet: call `start`.

    Attributes
    ----------
    step : int
        Steps of each game so far.
    seconds : dict of str to float
        Time spent in each of `STAGES`.
    """

    def __init__(self, config: Config, games: Games):
        self.config, self.games = config, games
        self.policy, self.rollout = make_policy(config), Rollout(config)
        self.tally = Tally(config.envs, config.running_mean)
        self.step = 0
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._screens = as_words(games.screens)
        self._slots = [games.slots[members] for members in games.groups]

    def start(self) -> None:
        """Reset all games."""
        self.games.reset()

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache."""
        self.policy.warm_up()
        self.rollout.warm_up()

    def advance(self, greedy: bool = False) -> None:
        """Take one step of every game, and count the outcomes of the step before."""
        games, rollout, clock, seconds = self.games, self.rollout, time.perf_counter, self.seconds
        before = rollout.rows - 1
        row = rollout.new_row()
        for group, (members, slots) in enumerate(zip(games.groups, self._slots, strict=True)):
            t0 = clock()
            games.recv(group)
            t1 = clock()
            rollout.observe(row, self._screens, slots, members, games.ended)
            t2 = clock()
            if before >= 0:
                rollout.rewards[before, members] = games.rewards[slots]
                rollout.ended[before, members] = games.ended[slots]
            t3 = clock()
            self.policy.act(rollout, row, members, self.step, greedy)
            t4 = clock()
            games.send(group, rollout.actions[row, members])
            t5 = clock()
            for stage, spent in zip(STAGES, (t1 - t0, t2 - t1, t4 - t3, t5 - t4, t3 - t2), strict=False):
                seconds[stage] += spent
        self.step += 1
        if before >= 0:
            t0 = clock()
            self.tally.add(rollout.rewards[before], rollout.ended[before])
            seconds["record"] += clock() - t0


class Trainer(Player):
    """Plays, and learns.

    The order of things is the same for any number of workers and groups: all games take step t, then the
    weights may change, then all games take step t + 1. An update learns from outcomes up to step t − 1 while the
    emulators are busy with step t.

    Attributes
    ----------
    learner : Reinforce or PPO
        Changes the weights.
    """

    def __init__(self, config: Config, games: Games):
        super().__init__(config, games)
        self.learner: Reinforce | PPO = (PPO if config.algorithm == "ppo" else Reinforce)(config, self.policy)

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache."""
        super().warm_up()
        self.learner.warm_up()

    def learn_if_due(self) -> bool:
        """Update the weights if the learner has enough to learn from."""
        if not self.learner.due(self.rollout, self.tally):
            return False
        t0 = time.perf_counter()
        self.learner.learn(self.rollout, self.tally)
        self.rollout.drop_used()
        self.seconds["learn"] += time.perf_counter() - t0
        return True

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that a run is, as arrays by name; waits for the steps in flight."""
        parts = {
            "policy": self.policy.state(),
            "learner": self.learner.state(),
            "rollout": self.rollout.state(),
            "tally": self.tally.state(),
            "games": self.games.snapshot(),
        }
        arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
        return arrays | {"step": np.array(self.step)}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from a `state` in place of `start`, bit for bit, with any number of workers."""
        parts: dict[str, dict[str, npt.NDArray[Any]]] = {}
        for key, array in arrays.items():
            part, _, name = key.partition(".")
            parts.setdefault(part, {})[name] = array
        self.policy.load_state(parts["policy"])
        self.learner.load_state(parts["learner"])
        self.rollout.load_state(parts["rollout"])
        self.tally.load_state(parts["tally"])
        self.games.restore(parts["games"])
        self.step = int(arrays["step"])
