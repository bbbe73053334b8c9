"""The agent that ships with the package."""

from fastpong.checkpoint import SHIPPED, load, load_weights
from fastpong.play import Game
from fastpong.policy import shapes


def test_it_is_small_and_tells_how_it_was_trained() -> None:
    assert SHIPPED.stat().st_size < 6e6
    _, about = load(SHIPPED)
    assert about["steps"] > 0 and "[about]" in about["trained_with"]
    config, weights = load_weights(None)
    assert {name: array.shape for name, array in weights.items()} == shapes(config)


def test_it_wins_a_game_with_sticky_actions() -> None:
    game = Game(None, seed=123, sticky=0.25)
    for _ in game.pictures():
        pass
    assert game.score[0] == 21
