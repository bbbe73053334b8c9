"""Playing all games, and learning from them: the core of training and evaluation, without files."""

import subprocess
import time

import numpy as np

from fastpong.compiling import compile_apart
from fastpong.config import Config
from fastpong.errors import UsageError
from fastpong.games import LAYOUT as GAMES_LAYOUT
from fastpong.games import Games
from fastpong.kernels.images import as_words
from fastpong.policy import make_policy
from fastpong.ppo import PPO
from fastpong.ranks import Alone, Ranks, check_equal
from fastpong.reinforce import Reinforce
from fastpong.rollout import LAYOUT as ROLLOUT_LAYOUT
from fastpong.rollout import Rollout, join_states
from fastpong.shards import Arrays, Layout, cut, join
from fastpong.tally import LAYOUT as TALLY_LAYOUT
from fastpong.tally import Tally

TALK_EVERY = 16
"""Steps of PPO after which ranks tell each other which games have ended; also alone, so that it changes nothing."""

CHECK_EVERY = 8
"""Batches after which ranks make sure that they still have the same weights."""

LAYOUTS: dict[str, Layout] = {"rollout": ROLLOUT_LAYOUT, "tally": TALLY_LAYOUT, "games": GAMES_LAYOUT}

STAGES = ("wait", "observe", "act", "send", "record", "learn")


class Player:
    """Plays all games in lockstep.

    Parameters
    ----------
    config : Config
        The run's settings.
    games : Games
        All games of the run or, with several ranks, those of this one. Not started yet: call `start`.

    Attributes
    ----------
    step : int
        Steps of each game so far.
    seconds : dict of str to float
        Time spent in each of `STAGES`.
    """

    def __init__(self, config: Config, games: Games):
        self.config, self.games = config, games
        self.policy, self.rollout = make_policy(config, games.first), Rollout(config, games.envs)
        self.tally = Tally(config.envs, config.running_mean, range(games.first, games.first + games.envs))
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
        self.tally.warm_up()

    def advance(self, greedy: bool = False) -> None:
        """Take one step of every game, and count the outcomes of the step before."""
        games, rollout, clock, seconds = self.games, self.rollout, time.perf_counter, self.seconds
        before = rollout.rows - 1
        row = rollout.new_row()
        with games.turns:
            for group, (members, slots) in enumerate(zip(games.groups, self._slots, strict=True)):
                t0 = clock()
                games.recv(group)
                t1 = clock()
                rollout.observe(row, self._screens, slots, members, games.ended)
                t2 = clock()
                rollout.take_over(row, slots, members, games.rewards, games.ended, games.practising, games.planned)
                t3 = clock()
                actions = self.policy.act(rollout, row, members, self.step, greedy)
                t4 = clock()
                games.send(group, actions)
                t5 = clock()
                for stage, spent in zip(STAGES, (t1 - t0, t2 - t1, t4 - t3, t5 - t4, t3 - t2), strict=False):
                    seconds[stage] += spent
        self.step += 1
        if before >= 0:
            t0 = clock()
            self.tally.add(rollout.rewards[before], rollout.ended[before], rollout.practising[before])
            seconds["record"] += clock() - t0


class Trainer(Player):
    """Plays, and learns.

    The order of things is the same for any number of ranks, workers and groups: all games take step t, then the
    weights may change, then all games take step t + 1. An update learns from outcomes up to step t − 1 while the
    emulators are busy with step t.

    Attributes
    ----------
    ranks : Ranks
        Who learns together.
    talked_at : int
        The step after which they last told each other what had happened.
    learner : Reinforce or PPO
        Changes the weights.
    """

    def __init__(self, config: Config, games: Games, ranks: Ranks | None = None):
        super().__init__(config, games)
        self.ranks = ranks or Alone()
        self.mine = range(games.first, games.first + games.envs)
        self.learner: Reinforce | PPO = (
            PPO(config, self.policy, self.ranks, self.mine)
            if config.algorithm == "ppo"
            else Reinforce(config, self.policy, self.ranks)
        )
        self._batches = self.talked_at = 0
        # Subprocesses that fill the cache with what learns, and with what a critic needs.
        self._learner_apart: subprocess.Popen[bytes] | None = None
        self._critic_apart: subprocess.Popen[bytes] | None = None
        # How often ranks tell each other which games have ended: REINFORCE waits for a number of games, PPO does not.
        self._talk_every = TALK_EVERY if config.algorithm == "ppo" else 1

    def advance(self, greedy: bool = False) -> None:
        """See `Player.advance`; now and then ranks also `talk`."""
        if isinstance(self.learner, PPO):
            steps = self.step * self.config.envs
            self.policy.held_share = self.learner.schedule.held_share(steps)
            self.games.attempts = self.learner.schedule.attempts(steps)
        super().advance(greedy)
        if self.step % self._talk_every == 0:
            self.talk()

    def talk(self) -> None:
        """Exchange with the other ranks what has happened to the games."""
        self.tally.exchange(self.ranks)
        self.talked_at = self.step

    def reached_target(self) -> bool:
        """Whether the score, or the running reward of windows, is at the target; the same on all ranks."""
        windows = self.learner.windows if isinstance(self.learner, Reinforce) else None
        if windows:
            return windows.running is not None and windows.running >= self.config.target
        return self.tally.reached(self.config.target)

    @property
    def compiling(self) -> bool:
        """Whether a subprocess still compiles what is needed for the first batch."""
        return self._learner_apart is not None and self._learner_apart.poll() is None

    def warm_up(self, meanwhile: bool = False) -> None:
        """Compile the kernels, or load them from the cache.

        If those that learn are not in the cache, a subprocess compiles them; with `meanwhile` it is not waited for
        until the first batch is due. Those of the critic are not needed before the agent wins: they are compiled
        after that, while it plays. Not with several ranks: the others would find the cache as empty, and compile as
        well.
        """
        self._learner_apart = compile_apart("ppo") if isinstance(self.learner, PPO) else None
        super().warm_up()
        if not (self._learner_apart and meanwhile):
            self._warm_up_learner()

    def _warm_up_learner(self) -> None:
        if self._learner_apart:
            self._learner_apart.wait()
            self._learner_apart = None
        self.learner.warm_up()
        if isinstance(self.learner, PPO) and self.learner.critic:
            won = self.learner.schedule.won_by is not None
            self._critic_apart = None if won or self.ranks.size > 1 else compile_apart("critic")
            if not self._critic_apart:
                self.learner.warm_up_critic()

    def learn_if_due(self) -> bool:
        """Update the weights if the learner has enough to learn from."""
        if not self.learner.due(self.rollout, self.tally):
            return False
        if self._learner_apart:
            self._warm_up_learner()
        t0 = time.perf_counter()
        self.learner.learn(self.rollout, self.tally)
        self.rollout.drop_used()
        self._batches += 1
        if self._batches % CHECK_EVERY == 0:
            check_equal(self.ranks, self.policy.weights)
        self.seconds["learn"] += time.perf_counter() - t0
        return True

    def state(self) -> Arrays:
        """Everything that a run is, as arrays by name, of all ranks; waits for the steps in flight.

        All ranks have to call it; only rank 0 gets the arrays, the others none.
        """
        self.talk()
        mine = {"rollout": self.rollout.state(), "tally": self.tally.state(), "games": self.games.snapshot()}
        shares = self.ranks.collect(mine)
        if shares is None:
            return {}
        parts = {
            "rollout": join_states([share["rollout"] for share in shares]),
            "tally": join([share["tally"] for share in shares], TALLY_LAYOUT),
            "games": join([share["games"] for share in shares], GAMES_LAYOUT),
        }
        parts |= {"policy": self.policy.state(), "learner": self.learner.state()}
        arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
        return arrays | {"step": np.array(self.step)}

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state` in place of `start`, bit for bit, with any number of ranks and workers.

        Raises `UsageError` if it is of another version, which keeps other things.
        """
        parts: dict[str, Arrays] = {}
        for key, array in arrays.items():
            part, _, name = key.partition(".")
            parts.setdefault(part, {})[name] = array
        try:
            for name, layout in LAYOUTS.items():
                parts[name] = cut(parts[name], layout, self.mine)
            self.policy.load_state(parts["policy"])
            self.learner.load_state(parts["learner"])
        except (KeyError, ValueError) as error:
            raise UsageError(f"the run is of another version of fastpong ({error}): begin a new one") from None
        self.rollout.load_state(parts["rollout"])
        self.tally.load_state(parts["tally"])
        self.games.restore(parts["games"])
        self.step = int(arrays["step"])
