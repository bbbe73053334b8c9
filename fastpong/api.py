"""fastpong from Python: what the package's own names stand for."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from fastpong import config
from fastpong.agent import Agent, load
from fastpong.config import PRESETS, at_least
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.errors import UsageError
from fastpong.limits import Limits
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder
from fastpong.show.display import Display
from fastpong.show.events import Callback
from fastpong.training import session
from fastpong.training.evaluate import Evaluation
from fastpong.training.evaluate import evaluate as evaluate_weights
from fastpong.training.session import Request


@dataclass(frozen=True)
class Run:
    """A run that has ended, or stopped for a while.

    >>> run = fastpong.train("karpathy", envs=2, steps=100, progress="none", eval_games=0)
    >>> run.resume(steps=200, progress="none").last["steps"]
    200

    Attributes
    ----------
    path : Path
        Its folder: settings, metrics, checkpoints, weights.
    reason : str
        Why it stopped: ``target``, ``steps``, ``minutes``, ``callback`` or ``interrupted``.
    last : dict
        The last line of its metrics, see `fastpong.runs.metrics`.
    evaluation : dict, optional
        How its best weights played at the end, with ``mean``, ``ci95_low``, ``ci95_high``, ``games`` and ``steps``.
    """

    path: Path
    reason: str
    last: dict[str, Any]
    evaluation: dict[str, Any] | None

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """All lines of ``metrics.jsonl``."""
        return read_metrics(RunFolder(self.path).metrics)

    @property
    def best(self) -> Agent:
        """The agent with the best weights."""
        return load(self.path)

    def resume(self, **options: Any) -> "Run":
        """Go on, bit for bit as if it had not stopped; options are those of `train`, limits above all."""
        return train(run=self.path, resume=True, **options)


def train(
    preset: str | None = None, *, envs: int | None = None, seed: int | None = None, sticky: float | None = None,
    steps: int | None = None, minutes: float | None = None, target: float | None = None,
    run: "Path | str | None" = None, resume: bool = False, workers: int | None = None, engine: str = DEFAULT_ENGINE,
    progress: str | None = None, callback: Callback | None = None, **settings: Any,
) -> Run:  # fmt: skip
    """Train an agent in a run folder, as ``fastpong train`` does, and return the run.

    >>> run = fastpong.train("karpathy", envs=2, steps=100, progress="none", eval_games=0)
    >>> run.reason, run.last["steps"]
    ('steps', 100)

    Parameters
    ----------
    preset, envs, seed, sticky, target
        See `presets` and `settings`; `sticky` is ``repeat_action_probability``.
    steps, minutes
        Stop at so many steps over all envs, or after so many minutes.
    run : path, optional
        The run folder; by default a new one in ``runs/``.
    resume : bool
        Go on with `run`, or with the latest run.
    workers : int, optional
        Env subprocesses; by default one per core but for one core, which this process has, and one per 16 envs at
        most; with ALE one per core. They change nothing but the speed.
    engine : str
        What steps the games, one of `fastpong.envs.engine.ENGINES`; it changes nothing but the speed. A run goes on
        with the one that saved it.
    progress : str, optional
        ``live``, ``lines`` or ``none``; by default live in a terminal or a notebook.
    callback : callable, optional
        Is given each `fastpong.show.events.Event`: metrics, updates, finished games and checkpoints.
        ``event.stop()`` ends the run. An exception ends it, too, with a checkpoint, and is raised here.
    settings
        Any other setting by name.

    Raises
    ------
    UsageError
        For an impossible setting; nothing has begun then.
    FastpongError
        When training fails. The last checkpoint is intact.
    """
    flags = dict(preset=preset, num_envs=envs, seed=seed, repeat_action_probability=sticky, target_score=target)
    changes = {**settings, **{name: value for name, value in flags.items() if value is not None}}
    path = None if run is None else _path("run", run)
    display = Display(progress, callback)
    request = Request(changes, path, resume, workers, engine, limits=Limits(steps, minutes), command=["Python"])
    result = session.train(request, display)
    for text in session.what_next(result, engine):
        display.note(text)
    return Run(result.path, result.reason, result.metrics, result.evaluation)


def evaluate(
    agent: "Agent | Path | str | None" = None, games: int = 100, *, seed: int = 0, workers: int | None = None,
    engine: str = DEFAULT_ENGINE, tell: Callable[[int], object] = lambda done: None,
) -> Evaluation:  # fmt: skip
    """Let an agent play whole games: mean score with a 95 % confidence interval, games won, scores and lengths.

    >>> fastpong.evaluate(games=1).wins
    1

    `agent` is what `load` returns or takes. `seed` keys the games, never those of training; ``fastpong eval`` plays the
    same ones. `engine` steps them. `tell` is given the number of finished games. Raises `UsageError` or `EnvError`.
    """
    at_least("games", games, 1, whole=True)
    at_least("seed", seed, 0, whole=True)
    if workers is not None:
        at_least("workers", workers, 1, whole=True)
    if not isinstance(agent, Agent):
        agent = load(None if agent is None else _path("agent", agent))
    return evaluate_weights(agent.config, agent.weights, games, seed, workers, not agent.sample, tell, engine)


def _path(name: str, value: object) -> Path:
    """Return a path; raises `UsageError` for what is none, or empty: that would be the current directory."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise UsageError(f"{name} is a path, not {value!r}")
    return Path(text)


class Setting(NamedTuple):
    """What can be set: its default, what it may be, what it means, and its group.

    >>> fastpong.settings()["num_envs"].allowed
    '1 … 65_536'
    """

    default: config.Value
    allowed: str
    help: str
    group: str


def settings() -> dict[str, Setting]:
    """Return all settings by name.

    >>> fastpong.settings()["gamma"].default
    0.995
    """
    table = {}
    for name, one in config.settings().items():
        facts = one.metadata
        table[name] = Setting(cast(config.Value, one.default), config.allowed(name), facts["help"], facts["group"])
    return table


def presets() -> dict[str, dict[str, config.Value]]:
    """Return what each preset changes in the defaults.

    >>> fastpong.presets()["karpathy"]["hidden_units"]
    200
    """
    return {name: dict(changes) for name, changes in PRESETS.items()}
