"""How well an agent plays: whole games on seeds of their own, and which weights of a run are the best.

The mean of the last 100 training games is a poor estimate: it lags, it is of sampled actions, and its highest value is
partly luck. So candidates, weights that were saved on the way, play the same fresh games at the end of a run, greedily,
and the best of them then plays others, which nothing was chosen by.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fastpong.arrays import Arrays
from fastpong.config import Config, changed
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.vector_env import VectorEnv
from fastpong.noise import EVALUATION, stream_key
from fastpong.policy import make_policy
from fastpong.runs.checkpoint import CheckpointError
from fastpong.runs.facts import Facts, load_facts, policy_weights
from fastpong.runs.folder import RunFolder
from fastpong.training.actor import Actor

MAX_ENVS = 64
"""Games that are played side by side, at most."""

FEW = 10
"""Of fewer games the mean has no interval: their scores say more than samples of them."""

# Seeds of evaluations that no `fastpong eval --seed` repeats by accident.
_CHOICE, _FINAL = 1 << 40, 1 << 41


@dataclass(frozen=True)
class Evaluation:
    """How an agent played whole games: the mean score with a 95 % confidence interval (None for few games), games won.

    `steps` are those of all games; `scores` and `lengths`, in steps, those of each, in the order of envs.

    >>> result = fastpong.evaluate(games=1)
    >>> result.mean == result.scores[0] and result.steps == result.lengths[0]
    True
    """

    games: int
    mean: float
    ci95_low: float | None
    ci95_high: float | None
    wins: int
    steps: int
    scores: tuple[int, ...]
    lengths: tuple[int, ...]

    def summary(self) -> dict[str, Any]:
        """Everything but the single games."""
        return {name: value for name, value in asdict(self).items() if name not in ("scores", "lengths")}


def evaluation_config(config: Config, num_envs: int, seed: int) -> Config:
    """Return the settings of an evaluation with so many envs, and no exploring starts.

    `seed` keys noise that no training run has.
    """
    config = replace(config, exploring_start_steps=0)
    return changed(config, {"num_envs": num_envs, "seed": stream_key(seed, EVALUATION) >> 1})


def evaluate(
    config: Config, weights: Arrays, games: int, seed: int, workers: int | None = None, greedy: bool = True,
    tell: Callable[[int], object] = lambda done: None, engine: str = DEFAULT_ENGINE,
) -> Evaluation:  # fmt: skip
    """Play `games` whole games and return their scores.

    Up to 64 are played side by side. Each of these envs has a fixed number of games to play, so that short ones are not
    counted more often than long ones. `config` tells how the agent was built, and the rules; `weights` are by name, see
    `fastpong.policy`. `seed` keys sticky actions (and the agent's choices, if it is not greedy).
    """
    count = min(games, MAX_ENVS)
    config = evaluation_config(config, count, seed)
    quota = [len(range(env, games, count)) for env in range(count)]
    with VectorEnv.of(config, min(workers, count) if workers else workers, engine=engine) as envs:
        policy = make_policy(config)
        policy.weights.load(weights)
        actor = Actor(config, envs, policy)
        actor.start()
        games_of: list[list[tuple[int, int]]] = [[] for _ in range(count)]  # score and length of each, by envs
        while any(len(done) < wanted for done, wanted in zip(games_of, quota, strict=True)):
            actor.step(greedy)
            actor.rollout.release(actor.rollout.rows - 1)
            for game in actor.stats.take_finished():
                if len(games_of[game.env]) < quota[game.env]:
                    games_of[game.env].append((game.score, game.length))
                    tell(sum(map(len, games_of)))
    played = [game for done in games_of for game in done]
    return summarise([score for score, _ in played], [length for _, length in played])


def summarise(scores: list[int], lengths: list[int]) -> Evaluation:
    """Mean with a 95 % confidence interval: that of the means of 10,000 bootstrap samples (Efron, Ann. Stat. 1979)."""
    count = len(scores)
    values, counts = np.unique(scores, return_counts=True)
    means = np.random.default_rng(0).multinomial(count, counts / count, 10_000) @ values / count
    low, high = np.percentile(means, [2.5, 97.5]).tolist() if count >= FEW else (None, None)
    wins = sum(value > 0 for value in scores)
    return Evaluation(count, sum(scores) / count, low, high, wins, sum(lengths), tuple(scores), tuple(lengths))


def choose_best(
    config: Config, run: RunFolder, workers: int | None, note: Callable[[str], None], engine: str = DEFAULT_ENGINE
) -> dict[str, Any] | None:
    """Let the candidates of a run play, make the best one ``best.npz``, and measure it on other games.

    Each candidate plays `eval_games` games, the best one twice as many more; `note` is called with a line about each
    step. Returns ``steps`` of the best one, ``mean``, ``ci95_low``, ``ci95_high`` and ``games`` of its last evaluation,
    and ``candidates`` (steps and mean of each); None if there is nothing to choose from, or the best of them was chosen
    before. Raises `CheckpointError` if ``best.npz`` cannot be written; the one of before is then intact.
    """
    candidates: dict[int, tuple[Arrays, Facts]] = {}
    for path in run.candidates():
        try:
            arrays, facts = load_facts(path)
            candidates[facts.steps] = policy_weights(path, arrays, config), facts
        except CheckpointError as error:
            note(f"{error}: it does not take part")
    if len(candidates) < 2 or config.eval_games == 0 or _is_chosen(run, [*candidates]):
        return None

    def play(steps: int, games: int, seed: int) -> Evaluation:
        return evaluate(config, candidates[steps][0], games, seed + config.seed, workers, engine=engine)

    games, means = config.eval_games, dict[int, float]()
    note(
        f"{len(candidates)} candidates for best.npz play {games} games each, the best {2 * games} more; "
        "ctrl-C skips this"
    )
    for number, steps in enumerate(candidates, 1):
        began = time.perf_counter()
        means[steps] = play(steps, games, _CHOICE).mean
        spent = time.perf_counter() - began
        note(f"candidate {number}, the weights after {steps:,} steps: {means[steps]:.2f}, in {spent:.0f} s")
    best = max(means, key=lambda steps: means[steps])
    note(f"the best, the weights after {best:,} steps, plays {2 * games} more")
    result = {**play(best, 2 * config.eval_games, _FINAL).summary(), "steps": best}  # not those of these games
    result["candidates"] = [{"steps": steps, "mean": mean} for steps, mean in means.items()]
    weights, facts = candidates[best]
    arrays = {f"policy.{name}": array for name, array in weights.items()}
    run.save_best(arrays, replace(facts, chosen_from=tuple(means)), evaluation=result)
    return result


def _is_chosen(run: RunFolder, candidates: list[int]) -> bool:
    """Whether these candidates, by their steps, have played already."""
    with contextlib.suppress(CheckpointError):
        return list(load_facts(run.best)[1].chosen_from) == candidates
    return False
