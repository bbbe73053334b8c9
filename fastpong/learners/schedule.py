"""What changes over a run of PPO: annealing, the learning rate that a KL divergence allows, and the late phase."""

from collections import deque

import numpy as np

from fastpong.arrays import Arrays
from fastpong.config import Config

POINTS = 1000
"""How many of the latest points tell how well the agent plays."""

LATE_BATCH = 2
"""By how much batches and minibatches are larger in the late phase: what is left to learn is small beside the noise."""

_KL_EXPONENT, _MAX_CHANGE = 0.3, 1.1  # of the controller, and the largest factor by which a batch changes the rate
_LEAST = 0.05  # of the annealing factor: an agent that wins every point has no rate to learn with, and endless logits


class Schedule:
    """Sets the learning rate, the coefficients and the phase of a run, batch by batch.

    What is annealed follows the points that are still lost, and not the steps: an agent that takes long to find out how
    to attack has as much rate and noise for it as one that finds out soon. The late phase begins once the agent wins
    most points: then the logits grow with every batch until the policy's entropy is at a level that is annealed as
    well. Growing before that keeps a run from finding out how to attack, and an entropy near 0 from getting any better.
    The larger the logits, the further a step of the optimiser moves the policy: the learning rate is reduced, as long
    as it has to be, so that a batch changes the policy by no more than `target_kl` (as TorchRL's KL-adaptive rate);
    `rate` is what the divergence allows at present.
    """

    def __init__(self, config: Config):
        self._config = config
        self._outcomes: deque[tuple[int, int]] = deque()  # points won and lost in each of the latest batches
        self.rate = config.learning_rate
        self.late = False

    @property
    def phase(self) -> str:
        """``early`` or ``late``."""
        return "late" if self.late else "early"

    @property
    def batch_factor(self) -> int:
        """By how much the batch that is played now, and its minibatches, are larger than the settings say."""
        return LATE_BATCH if self.late else 1

    @property
    def anneal_factor(self) -> float:
        """1 until `late_win_rate` of the points are won, then in proportion to the share that is lost."""
        return min(1.0, max(_LEAST, self._lost / max(_LEAST, 1.0 - self._config.late_win_rate)))

    @property
    def learning_rate(self) -> float:
        """Adam's step size for a batch."""
        return min(self.rate, self._config.learning_rate * self.anneal_factor)

    @property
    def entropy_coef(self) -> float:
        """The coefficient of the entropy bonus."""
        return self._config.entropy_coef * self.anneal_factor

    @property
    def target_kl(self) -> float:
        """The KL divergence that a batch may cause, in nats; 0: any."""
        c = self._config
        return c.target_kl_late if c.target_kl_late and self.late else c.target_kl

    def logit_factor(self, entropy: float) -> float:
        """Return the factor by which the logits grow after a batch in which the policy had this entropy, in nats."""
        c = self._config
        grows = self.late and entropy > c.logit_growth_entropy * self.anneal_factor
        return 1.0 + c.logit_growth if grows else 1.0

    def adapt(self, steps: int, won: int, lost: int, kl: float) -> None:
        """Take note of a batch that ended after `steps` steps: points won and lost, and its KL divergence in nats."""
        c = self._config
        self._outcomes.append((won, lost))
        while sum(map(sum, self._outcomes)) - sum(self._outcomes[0]) >= POINTS:
            self._outcomes.popleft()
        self.late = self.late or self._lost <= 1.0 - c.late_win_rate or steps >= c.late_by_step
        if self.target_kl and kl > 0.0:
            factor = min(_MAX_CHANGE, max(1.0 / _MAX_CHANGE, (self.target_kl / kl) ** _KL_EXPONENT))
            self.rate = min(c.learning_rate, self.learning_rate * factor)

    @property
    def _lost(self) -> float:
        """The share of the latest points that were lost, 1 while there are too few."""
        points = sum(map(sum, self._outcomes))
        return sum(lost for _, lost in self._outcomes) / points if points >= POINTS else 1.0

    def state(self) -> Arrays:
        """Everything, as arrays by name."""
        return {
            "schedule_outcomes": np.array(self._outcomes, np.int64).reshape(-1, 2),
            "schedule_late": np.array(self.late),
            "schedule_rate": np.array(self.rate),
        }

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state`."""
        self._outcomes = deque((int(won), int(lost)) for won, lost in arrays["schedule_outcomes"])
        self.late = bool(arrays["schedule_late"])
        self.rate = float(arrays["schedule_rate"])
