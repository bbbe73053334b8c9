"""The agent that ``play`` and ``eval`` are asked for: its weights, the rules it plays by, and what is said of both."""

from dataclasses import dataclass
from pathlib import Path

from fastpong.arrays import Arrays
from fastpong.config import Config, changed
from fastpong.training.run_folder import load_weights


@dataclass(frozen=True)
class Agent:
    """A trained agent: `config` tells how it was built, and the rules; `weights` are by name."""

    name: str
    config: Config
    weights: Arrays
    seed: int
    sample: bool

    @classmethod
    def load(cls, checkpoint: Path | None, sticky: float | None, seed: int, sample: bool) -> "Agent":
        """Load it from a checkpoint, ``best.npz`` or run folder; None: the one that ships with the package.

        `sticky` is the probability of a sticky action at each frame, None: as in training. `seed` keys the noise of the
        games, and `sample` lets actions be sampled. Raises `CheckpointError`, or `UsageError` for an impossible value.
        """
        config, weights = load_weights(checkpoint)
        changes = {} if sticky is None else {"repeat_action_probability": sticky}
        return cls(str(checkpoint or "the shipped agent"), changed(config, changes), weights, seed, sample)

    def __str__(self) -> str:
        actions, sticky = "sampled" if self.sample else "greedy", self.config.repeat_action_probability
        return f"{self.name}, {actions} actions, sticky {sticky:g}, seed {self.seed}"
