"""``fastpong train``: what the command line asks for, and how the run ended."""

import contextlib
import json
from typing import Any

from fastpong.commands.evaluate import count, interval
from fastpong.config import Config
from fastpong.errors import UsageError, tell
from fastpong.runs.folder import RunFolder
from fastpong.show.events import Watched
from fastpong.show.panel import KINDS, make_progress
from fastpong.show.progress import Progress
from fastpong.show.tensorboard import tensorboard
from fastpong.training.evaluate import choose_best
from fastpong.training.loop import Result
from fastpong.training.session import Request, hold, what_next


def check_display(show: str | None, log: str | None) -> None:
    """Raise `UsageError` unless `show` is one of `fastpong.show.progress.KINDS`, `log` is ``tensorboard``."""
    if show is not None and show not in KINDS:
        raise UsageError(f"--progress is one of {', '.join(KINDS)}, not '{show}'")
    if log not in (None, "tensorboard"):
        raise UsageError(f"--log is tensorboard, not '{log}'")


def run(request: Request, show: str | None, log: str | None, as_json: bool) -> int:
    """Train, print the result, and return the exit code; arguments as for `check_display`."""
    check_display(show, log)
    make_log = tensorboard() if log else None

    def display(config: Config, folder: RunFolder, past: list[dict[str, Any]]) -> Progress:
        progress = make_progress(show, config, folder.path, past, request.limits)
        return Watched(progress, [make_log(folder.path)]) if make_log else progress

    def report(config: Config, folder: RunFolder, result: Result) -> None:
        _report(config, folder, result, request, as_json)
        if not as_json and show != "none":
            tell(*what_next(config, folder, result, request.engine))

    return 130 if hold(request, display, report).result.reason == "interrupted" else 0


def _report(config: Config, folder: RunFolder, result: Result, request: Request, as_json: bool) -> None:
    """Print how the run ended; then let its candidates play, and print which is the best."""
    summary: dict[str, Any] = {"reason": result.reason, "run": str(folder.path), **result.metrics}
    why = {
        "target": f"the target of {config.target_score:g} is reached",
        "steps": "the limit of steps is reached",
        "minutes": "the time is up",
        "interrupted": "interrupted",
    }[result.reason]
    how = "stopped" if result.changed else "nothing to do"
    score = "no game finished" if summary["score"] is None else f"score {summary['score']:.2f}"
    if not as_json:
        text = f"{how}, {why}: {score} after {summary['steps']:,} steps; all is saved in {folder.path}"
        tell(text, result=True)
    best = None
    with contextlib.suppress(KeyboardInterrupt):  # best.npz is then that of the best score in training
        if result.reason != "interrupted":
            best = choose_best(config, folder, request.workers, tell, request.engine)
    if as_json:
        tell(json.dumps({**summary, "best": best}), result=True)
    elif best:
        tell(
            f"best.npz, the weights after {best['steps']:,} steps: mean score {best['mean']:.2f}{interval(best)} "
            f"over {count(best['games'], 'fresh ')}",
            result=True,
        )
