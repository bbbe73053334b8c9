"""``fastpong eval``: how well an agent plays."""

import json
import sys

from fastpong.agent import Agent
from fastpong.api import evaluate


def run(agent: Agent, seed: int, games: int, workers: int | None, engine: str, as_json: bool) -> None:
    """Play whole games, and print the mean score; in a terminal, count them meanwhile."""
    if agent.config.repeat_action_probability == 0 and not agent.sample and games > 1:
        print("without sticky actions a greedy agent plays the same game every time: use --sample", file=sys.stderr)

    def tell(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {games} games", end="\n" if done == games else "", file=sys.stderr, flush=True)

    result = evaluate(agent, games, seed=seed, workers=workers, engine=engine, tell=tell)
    if as_json:
        print(json.dumps(result.summary()))
        return
    sure = "" if result.ci95_low is None else f" (95 % confidence {result.ci95_low:.2f} … {result.ci95_high:.2f})"
    print(
        f"mean score {result.mean:.2f}{sure} over {result.games} games, {result.wins} won, "
        f"{result.steps / result.games:,.0f} steps a game\n{agent}, seed {seed}"
    )
