"""Weights of a run that may be its best: agents that always take the same action."""

from fastpong.arrays import Arrays
from fastpong.config import Config
from fastpong.policy import make_policy
from fastpong.runs.facts import Facts
from fastpong.runs.folder import RunFolder


def one_action(config: Config, action: int) -> Arrays:
    """Return weights, by name, with which the policy always takes this action."""
    weights = make_policy(config).weights
    weights.flat[:] = 0.0
    weights.arrays["w2"][action, -1] = 5.0  # its bias
    return weights.arrays


def add_candidate(config: Config, run: RunFolder, steps: int, score: float | None, action: int) -> None:
    """Add a candidate to a run that always takes this action."""
    weights = {f"policy.{name}": array for name, array in one_action(config, action).items()}
    run.add_candidate(weights, Facts(config, steps, score=score))
