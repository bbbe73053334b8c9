"""``fastpong eval``: how well an agent plays."""

import json
import sys
from typing import Any

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from fastpong.agent import Agent
from fastpong.api import evaluate
from fastpong.errors import tell
from fastpong.show.panel import can_redraw
from fastpong.training.evaluate import Evaluation


def run(agent: Agent, seed: int, games: int, workers: int | None, engine: str, as_json: bool) -> None:
    """Play whole games, and print the mean score; in a terminal, say who plays, and count games and time meanwhile."""
    if agent.config.repeat_action_probability == 0 and not agent.sample and games > 1:
        tell("without sticky actions a greedy agent plays the same game every time: use --sample")
    who = f"{agent}, seed {seed}"
    if sys.stderr.isatty():
        tell(who)
    columns = TextColumn("{task.completed} of " + count(games)), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not can_redraw()) as progress:
        task = progress.add_task("", total=games)
        result = evaluate(
            agent, games, seed=seed, workers=workers, engine=engine,
            tell=lambda done: progress.update(task, completed=done),
        )  # fmt: skip
    if as_json:
        tell(json.dumps(_facts(agent, seed, result)), result=True)
        return
    told = (
        f"mean score {result.mean:.2f}{interval(result.summary())} over {count(result.games)}, {result.wins} won, "
        f"{result.steps / result.games:,.0f} steps a game"
    )
    tell(told, who, result=True)


def _facts(agent: Agent, seed: int, result: Evaluation) -> dict[str, Any]:
    """Return who played, and how, for other programs."""
    return {
        "agent": agent.name, "seed": seed, "sticky": agent.config.repeat_action_probability,
        "greedy": not agent.sample, **result.summary(), "scores": result.scores,
    }  # fmt: skip


def count(games: int, kind: str = "") -> str:
    """Return ``1 game``, ``2 games`` …, or some of a `kind`."""
    return f"{games:,} {kind}game{'' if games == 1 else 's'}"


def interval(facts: dict[str, Any]) -> str:
    """Return the interval of the mean score in words, with a space before; nothing for few games."""
    if facts["ci95_low"] is None:
        return ""
    return f" (95 % confidence {facts['ci95_low']:.2f} … {facts['ci95_high']:.2f})"
