"""One step of all games, and one update of the weights: the core of training, without files or clocks."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.games import Games
from fastpong.kernels.images import as_words
from fastpong.policy import Policy
from fastpong.rollout import Rollout
from fastpong.tally import Tally

STAGES = ("wait", "observe", "act", "send", "record", "learn")


class Trainer:
    """Plays all games in lockstep and learns from them.

    The order of things is the same for any number of workers and groups: all games take step t, then the
    weights may change, then all games take step t + 1. An update learns from outcomes up to step t − 1 while the
    emulators are busy with step t.

    Parameters
    ----------
    config : Config
        The run's settings.
    games : Games
        Not started yet: call `start` or `load_state`.

    Attributes
    ----------
    seconds : dict of str to float
        Time spent in each of `STAGES`.
    entropy : float or None
        Mean entropy of the policy over the last batch, in nats.
    """

    def __init__(self, config: Config, games: Games):
        self.config, self.games = config, games
        self.policy, self.rollout = Policy(config), Rollout(config)
        self.tally = Tally(config.envs, config.running_mean)
        self.step = 0
        self.entropy: float | None = None
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

    def advance(self) -> None:
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
            self.policy.act(
                rollout.changes, rollout.starts[row], rollout.lengths[row], members, self.step, rollout.actions[row]
            )
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

    def learn_if_due(self) -> bool:
        """Update the weights if enough games have ended since the last update."""
        if self.tally.batch_games < self.config.batch_games:
            return False
        t0 = time.perf_counter()
        rollout = self.rollout
        batch = rollout.cut_batch(rollout.rows - 1)  # the last row has no outcome yet
        self.entropy = self.policy.add_gradient(
            rollout.changes, rollout.starts.reshape(-1), rollout.lengths.reshape(-1),
            rollout.actions.reshape(-1), batch.samples, batch.advantages,
        )  # fmt: skip
        self.policy.step()
        rollout.drop_used()
        self.tally.batch_games = 0
        self.seconds["learn"] += time.perf_counter() - t0
        return True

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that a run is, as arrays by name; waits for the steps in flight."""
        parts = {
            "policy": self.policy.state(),
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
        self.rollout.load_state(parts["rollout"])
        self.tally.load_state(parts["tally"])
        self.games.restore(parts["games"])
        self.step = int(arrays["step"])
