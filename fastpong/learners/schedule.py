"""What changes over a run of PPO: the learning rate that a KL divergence allows, the late phase, and the weights."""

from collections import deque

import numpy as np

from fastpong.arrays import Arrays
from fastpong.config import Config

POINTS = 1000
"""How many of the latest points tell how well the agent plays."""

LATE_BATCH = 4
"""By how much batches, and minibatches, are larger in the late phase: what is left to learn is small beside noise."""

REINITS = 3
"""How often the weights are drawn anew, at most."""

_KL_EXPONENT, _MAX_CHANGE = 0.3, 1.1  # of the controller, and the largest factor by which a batch changes the rate


class Schedule:
    """Sets the learning rate and the phase of a run, batch by batch.

    The late phase begins once the agent wins most points: then the logits grow with every batch until the policy's
    entropy is at a level. Growing before that keeps a run from finding out how to attack, and an entropy near 0 from
    getting any better. The larger the logits, the further a step of the optimiser moves the policy: the learning rate
    is reduced, as long as it has to be, so that a batch changes the policy by no more than `target_kl` (as TorchRL's
    KL-adaptive rate); `rate` is what the divergence allows at present, and Adam's step size.

    One seed in fifteen learns far more slowly than the others. An agent that wins too little when the late phase is to
    begin at the latest is given up, and other weights are drawn: after `began` steps, `reinits` times so far (random
    restarts, as in Luby et al., "Optimal speedup of Las Vegas algorithms", 1993).
    """

    def __init__(self, config: Config):
        self._config = config
        self._outcomes: deque[tuple[int, int]] = deque()  # points won and lost in each of the latest batches
        self.rate = config.learning_rate
        self.late_since: int | None = None
        self.began = self.reinits = 0

    @property
    def phase(self) -> str:
        """``early`` or ``late``."""
        return "early" if self.late_since is None else "late"

    @property
    def batch_factor(self) -> int:
        """By how much the batch that is played now, and its minibatches, are larger than the settings say."""
        return 1 if self.late_since is None else LATE_BATCH

    @property
    def target_kl(self) -> float:
        """The KL divergence that a batch may cause, in nats; 0: any."""
        c = self._config
        return c.target_kl_late if c.target_kl_late and self.late_since is not None else c.target_kl

    def logit_factor(self, entropy: float) -> float:
        """Return the factor by which the logits grow after a batch in which the policy had this entropy, in nats."""
        c = self._config
        grows = self.late_since is not None and entropy > c.logit_growth_entropy
        return 1.0 + c.logit_growth if grows else 1.0

    def adapt(self, steps: int, won: int, lost: int, kl: float) -> bool:
        """Take note of a batch that ended after `steps` steps: points won and lost, and its KL divergence in nats.

        Return whether the agent is given up.
        """
        c = self._config
        self._outcomes.append((won, lost))
        while sum(map(sum, self._outcomes)) - sum(self._outcomes[0]) >= POINTS:
            self._outcomes.popleft()
        wins, overdue = self.win_rate >= c.late_win_rate, steps - self.began >= c.late_by_step
        if self.late_since is None and (wins or overdue):
            if not wins and self.win_rate < c.reinit_win_rate and self.reinits < REINITS:
                self._outcomes.clear()
                self.rate, self.began, self.reinits = c.learning_rate, steps, self.reinits + 1
                return True
            self.late_since = steps
        if self.target_kl and kl > 0.0:
            factor = min(_MAX_CHANGE, max(1.0 / _MAX_CHANGE, (self.target_kl / kl) ** _KL_EXPONENT))
            self.rate = min(c.learning_rate, self.rate * factor)
        return False

    def begin_late_phase(self, steps: int) -> None:
        """Begin the late phase whatever the agent wins."""
        self.late_since = steps

    @property
    def win_rate(self) -> float:
        """Share of the latest points that were won, 0 while there are too few."""
        points = sum(map(sum, self._outcomes))
        return sum(won for won, _ in self._outcomes) / points if points >= POINTS else 0.0

    def state(self) -> Arrays:
        """Everything, as arrays by name."""
        return {
            "schedule_outcomes": np.array(self._outcomes, np.int64).reshape(-1, 2),
            "schedule_late_since": np.array(-1 if self.late_since is None else self.late_since),
            "schedule_rate": np.array(self.rate),
            "schedule_began": np.array([self.began, self.reinits]),
        }

    def load_state(self, arrays: Arrays) -> None:
        """Continue from a `state`."""
        self._outcomes = deque((int(won), int(lost)) for won, lost in arrays["schedule_outcomes"])
        late_since = int(arrays["schedule_late_since"])
        self.late_since = None if late_since < 0 else late_since
        self.rate = float(arrays["schedule_rate"])
        self.began, self.reinits = arrays["schedule_began"].tolist()
