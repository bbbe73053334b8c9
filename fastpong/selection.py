"""Which weights of a run are the best: candidates are kept while it trains, and play for the place at its end.

The mean of the last 100 training games is a poor judge: it lags, it is made of drawn actions, and its highest
value is partly luck. So each candidate plays the same fresh games, greedily, and the winner then plays others, which
nothing was chosen by.
"""

from collections.abc import Callable
from typing import Any

from fastpong.checkpoint import Arrays, CheckpointError, RunFolder, load, save
from fastpong.config import Config
from fastpong.evaluate import Evaluation, evaluate

CANDIDATES = 3
"""Weights kept of a run, beside those of its end."""

# Seeds of evaluations that no `fastpong eval --seed` repeats by accident.
_CHOICE, _FINAL = 1 << 40, 1 << 41


def choose_best(
    config: Config, run: RunFolder, workers: int | None, note: Callable[[str], None]
) -> dict[str, Any] | None:
    """Let the candidates of a run play, make the best one ``best.npz``, and measure it anew.

    Parameters
    ----------
    config : Config
        Uses `eval_games` and `seed`.
    run : RunFolder
        Its candidates play `eval_games` games each, the winner twice as many more.
    workers : int, optional
        Game subprocesses.
    note : callable
        Is told what happens, a line each.

    Returns
    -------
    dict or None
        ``steps`` of the winner, ``mean``, ``ci95_low``, ``ci95_high``, ``games`` of its last evaluation, and
        ``candidates`` (steps and mean of each); None if there was nothing to choose from.

    Raises
    ------
    CheckpointError
        If ``best.npz`` cannot be written; the one of before is then intact.
    """
    candidates: dict[int, tuple[Arrays, dict[str, Any]]] = {}
    for path in run.candidates():
        try:
            arrays, about = load(path)
        except CheckpointError as error:
            note(f"{error}: it does not take part")
        else:
            candidates[about["steps"]] = arrays, about
    if len(candidates) < 2 or config.eval_games == 0:
        return None

    def play(steps: int, games: int, seed: int) -> Evaluation:
        weights = {name.removeprefix("policy."): array for name, array in candidates[steps][0].items()}
        return evaluate(config, weights, games, seed + config.seed, workers)

    means: dict[int, float] = {}
    for steps in candidates:
        note(f"the weights after {steps:,} steps play {config.eval_games} fresh games")
        means[steps] = play(steps, config.eval_games, _CHOICE).mean
        note(f"the weights after {steps:,} steps score {means[steps]:.2f}")
    steps = max(means, key=lambda steps: means[steps])
    note(f"those after {steps:,} steps are the best: they play {2 * config.eval_games} games that chose nothing")
    final = play(steps, 2 * config.eval_games, _FINAL)
    facts = {
        "steps": steps,
        "mean": final.mean,
        "ci95_low": final.ci95_low,
        "ci95_high": final.ci95_high,
        "games": final.games,
        "candidates": [{"steps": steps, "mean": mean} for steps, mean in means.items()],
    }
    arrays, about = candidates[steps]
    save(run.best, arrays, {**about, "evaluation": facts})
    return facts
