from fastpong.commands.evaluate import count, interval
from fastpong.training.evaluate import summarise


def test_few_games_have_no_interval() -> None:
    assert interval(summarise([20, 15] * 5, [1] * 10).summary()) == " (95 % confidence 16.00 … 19.00)"
    assert interval(summarise([20, 15], [1] * 2).summary()) == interval(summarise([20], [1]).summary()) == ""


def test_one_game_is_no_games() -> None:
    assert (count(1), count(2), count(1000), count(1, "fresh ")) == ("1 game", "2 games", "1,000 games", "1 fresh game")
