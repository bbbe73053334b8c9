"""How well an agent plays: whole games that it has never seen, and how sure one can be of the mean."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.config import Config, changed
from fastpong.games import Games
from fastpong.noise import EVALUATION, stream_key
from fastpong.trainer import Player


@dataclass(frozen=True)
class Evaluation:
    """Result of some whole games: mean score with a 95 % confidence interval (None for one game), games won, steps."""

    games: int
    mean: float
    ci95_low: float | None
    ci95_high: float | None
    wins: int
    steps: int
    scores: tuple[int, ...]

    def summary(self) -> dict[str, Any]:
        """Everything but the single scores."""
        return {name: value for name, value in asdict(self).items() if name != "scores"}


def evaluate(
    config: Config,
    weights: dict[str, npt.NDArray[Any]],
    games: int,
    seed: int,
    workers: int | None = None,
    greedy: bool = True,
) -> Evaluation:
    """Play `games` whole games and return their scores.

    Up to 64 are played side by side. Each of these has a fixed number of games to play, so that short ones are
    not counted more often than long ones.

    Parameters
    ----------
    config : Config
        How the agent was built, and the rules (`sticky`, `frame_skip`).
    weights : dict
        By name, see `fastpong.policy.shapes`.
    games : int
        Number of games, 1 or more.
    seed : int
        Keys sticky actions (and the agent's choices, if it is not greedy) in a stream of its own, so that no
        game repeats one of a training run.
    workers : int, optional
        Game subprocesses.
    greedy : bool
        Take the likeliest action instead of drawing one.
    """
    envs = min(games, 64)
    config = changed(config, {"envs": envs, "seed": stream_key(seed, EVALUATION) >> 1})
    quota = np.array([len(range(n, games, envs)) for n in range(envs)])
    if workers is not None:
        workers = min(workers, envs)
    with Games(envs, workers, config.seed, config.frame_skip, config.sticky, config.actions) as played:
        player = Player(config, played)
        player.policy.load_state(weights)
        player.start()
        scores: list[list[int]] = [[] for _ in range(envs)]
        score, length, steps = np.zeros(envs, np.int64), np.zeros(envs, np.int64), 0
        while any(len(done) < wanted for done, wanted in zip(scores, quota.tolist(), strict=True)):
            player.advance(greedy)
            rollout = player.rollout
            row = rollout.rows - 2  # the last row has no outcome yet
            if row < 0:
                continue
            score += rollout.rewards[row]
            length += 1
            for n in np.flatnonzero(rollout.ended[row]).tolist():
                if len(scores[n]) < quota[n]:
                    scores[n].append(int(score[n]))
                    steps += int(length[n])
                score[n] = length[n] = 0
            rollout.begins[:] = row + 1
            rollout.drop_used()
    return summarise([value for done in scores for value in done], steps)


def summarise(scores: list[int], steps: int) -> Evaluation:
    """Mean with a 95 % confidence interval: mean ± 1.96 · s / √n, s the deviation with n − 1."""
    count = len(scores)
    mean = sum(scores) / count
    wins = sum(value > 0 for value in scores)
    if count == 1:
        return Evaluation(count, mean, None, None, wins, steps, tuple(scores))
    spread = math.sqrt(sum((value - mean) ** 2 for value in scores) / (count - 1))
    half = 1.96 * spread / math.sqrt(count)
    return Evaluation(count, mean, mean - half, mean + half, wins, steps, tuple(scores))
