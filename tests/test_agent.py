"""The agent that ships with the package."""

import numpy as np

from fastpong.commands.agent import Agent
from fastpong.commands.play import Match
from fastpong.policy import make_policy
from fastpong.training.checkpoint import load
from fastpong.training.run_folder import SHIPPED, load_weights


def test_it_is_small_and_tells_how_it_was_trained() -> None:
    assert SHIPPED.stat().st_size < 6e6
    _, about = load(SHIPPED)
    # Its config.toml, or where the settings of the version that made it stand.
    assert "[about]" in about.get("trained_with", "") or "commit" in about.get("made_by", "")
    assert about["steps"] > 0
    config, weights = load_weights(None)
    assert {name: array.shape for name, array in weights.items()} == make_policy(config).weights.shapes
    assert all(np.isfinite(array).all() for array in weights.values())


def test_it_wins_a_game_with_sticky_actions() -> None:
    match = Match(Agent.load(None, None, 123, False))
    for _ in match.pictures():
        pass
    assert match.score[0] == 21
