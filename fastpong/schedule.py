"""How far PPO's policy may move with each batch, and when it becomes greedier: both depend on how well it does."""

import math
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config
from fastpong.practice import NO_PRACTICE, Attempts

POINTS = 1000
"""How many of the latest points tell how well the agent plays."""

_GAIN, _MOST = 0.3, 1.1  # of the controller, and the largest factor by which it changes the rate after a batch


class Schedule:
    """Sets the learning rate, the entropy weight and the greed of a run, batch by batch.

    Learning rate and entropy weight fall in a line over `schedule_steps`, or longer if the agent wins late. Once the
    agent wins most points the logits grow with every batch until the policy's entropy is at a level that falls in the
    same line: growing before that keeps a run from finding out how to attack, and an entropy near 0 from getting any
    better. The larger the logits, the further a step of the optimiser moves the policy: the learning rate is reduced,
    as long as it has to be, so that a batch changes the policy by no more than the KL divergence `kl`, or `kl_won`.

    Parameters
    ----------
    config : Config
        Uses `learning_rate`, `gamma`, `gamma_end`, `entropy`, `kl`, `kl_won` and the ``held_*``, ``practice*``,
        ``schedule_*`` and ``sharpen*`` settings.

    Attributes
    ----------
    rate : float
        What the divergence allows as learning rate at present.
    won_by : int or None
        Steps of the run after which the agent won most points.
    """

    def __init__(self, config: Config):
        self._config = config
        self._outcomes: deque[tuple[int, int]] = deque()  # points won and lost in each of the latest batches
        self.rate = config.learning_rate
        self.won_by: int | None = None

    def left(self, steps: int) -> float:
        """Return how much is left of the fall after so many steps, 1 … `schedule_floor`."""
        return max(self._config.schedule_floor, 1.0 - steps / self._end())

    def _end(self) -> int:
        """Return the step at which the fall ends: a run that wins late needs some time after that as well."""
        return max(self._config.schedule_steps, (self.won_by or 0) + self._config.sharpen_steps)

    def learning_rate(self, steps: int) -> float:
        """Return Adam's step size for the batch that ends after `steps` steps."""
        return min(self.rate, self._config.learning_rate * self.left(steps))

    def gamma(self, steps: int) -> float:
        """Return the discount factor: a new agent learns from what comes soon, a good one has to look further.

        As in François-Lavet et al., "How to discount deep reinforcement learning", 2015.
        """
        return self._config.gamma_end + (self._config.gamma - self._config.gamma_end) * self.left(steps)

    def entropy(self, steps: int) -> float:
        """Return the weight of the entropy bonus."""
        return self._config.entropy * self.left(steps)

    def held_share(self, steps: int) -> float:
        """Return the share of points that begin with the paddle held."""
        return max(0.0, 1.0 - steps / self._config.held_until)

    @property
    def kl(self) -> float:
        """The KL divergence that a batch may cause, in nats; 0: any."""
        c = self._config
        return c.kl_won if c.kl_won and self.won_by is not None else c.kl

    def growth(self, steps: int, entropy: float) -> float:
        """Return the factor by which the logits grow after a batch in which the policy had this entropy, in nats."""
        grows = self.won_by is not None and entropy > self._config.sharpen_entropy * self.left(steps)
        return 1.0 + self._config.sharpen if grows else 1.0

    def attempts(self, steps: int) -> Attempts:
        """Return how lost points are tried again: ever less often, but once until practice ends."""
        c = self._config
        if self._won_share() < c.practice_points:
            return NO_PRACTICE
        number = math.ceil(c.practice * max(0.0, 1.0 - steps / c.practice_until))
        return Attempts(number, c.practice_end == "last", c.practice_shifted)

    def add(self, steps: int, won: int, lost: int, kl: float) -> None:
        """Take note of a batch: points won and lost in it, and the KL divergence, in nats, that it caused."""
        c = self._config
        self._outcomes.append((won, lost))
        while sum(map(sum, self._outcomes)) - sum(self._outcomes[0]) >= POINTS:
            self._outcomes.popleft()
        wins = self._won_share() >= c.sharpen_points
        if self.won_by is None and (wins or steps >= c.sharpen_latest):
            self.won_by = steps
        if self.kl and kl > 0.0:
            factor = min(_MOST, max(1.0 / _MOST, (self.kl / kl) ** _GAIN))
            self.rate = min(c.learning_rate, self.learning_rate(steps) * factor)

    def _won_share(self) -> float:
        """Return the share of the latest points that were won, 0 while there are too few."""
        points = sum(map(sum, self._outcomes))
        return sum(won for won, _ in self._outcomes) / points if points >= POINTS else 0.0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays by name."""
        return {
            "schedule_outcomes": np.array(self._outcomes, np.int64).reshape(-1, 2),
            "schedule_won_by": np.array(-1 if self.won_by is None else self.won_by),
            "schedule_rate": np.array(self.rate),
        }

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a `state`."""
        self._outcomes = deque((int(won), int(lost)) for won, lost in arrays["schedule_outcomes"])
        won_by = int(arrays["schedule_won_by"])
        self.won_by = None if won_by < 0 else won_by
        self.rate = float(arrays["schedule_rate"])
