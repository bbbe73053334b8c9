"""Watch a run learn: the newest weights of a run that is training play, point by point."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fastpong.agent import Agent
from fastpong.arrays import Arrays
from fastpong.commands.play import FRAMES_PER_SECOND, Match, Picture, show
from fastpong.config import Config, changed
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.errors import UsageError, tell
from fastpong.runs.checkpoint import CheckpointError, NoCheckpointError
from fastpong.runs.find import newest_weights
from fastpong.runs.folder import RunFolder


class Following:
    """Games without end, each point of them by the newest weights of a run.

    Attributes
    ----------
    match : Match
        The games.
    steps : int
        Those of the run after which the weights that play were saved.
    points : dict
        Points won and lost, by such steps.
    ended : bool
        Whether the run has ended, and its last weights have played a point.
    """

    def __init__(
        self, folder: Path, sticky: float | None = None, sample: bool = False, seed: int = 0,
        engine: str = DEFAULT_ENGINE,
    ):  # fmt: skip
        self._run = RunFolder(folder)
        if not self._run.exists():
            raise UsageError(f"--follow needs the folder of a run, and there is none in {folder}")
        self.steps, config, weights = _first(self._run)
        config = changed(config, {} if sticky is None else {"repeat_action_probability": sticky})
        self.match = Match(Agent(config, weights, str(folder), sample=sample), seed, engine, endless=True)
        self.points: dict[int, list[int]] = {}
        self.ended = False

    def pictures(self, max_steps: int | None = None) -> Iterator[Picture]:
        """Play until the run has ended, or for `max_steps`, and yield the screen after each step: see `Match.pictures`.

        Raises `CheckpointError` if the folder holds another run by now.
        """
        for picture in self.match.pictures(max_steps):
            yield picture
            if reward := self.match.last.reward:
                self.points.setdefault(self.steps, [0, 0])[reward < 0] += 1
                is_training = self._run.is_training()  # asked first: what it saves at its end is not missed
                if not self._renew() and not is_training:
                    self.ended = True
                    return

    def _renew(self) -> bool:
        """Let newer weights play on, if there are any."""
        newer = newest_weights(self._run, self.steps)
        if newer is None:
            return False
        self.steps, _, weights = newer
        try:
            self.match.load(weights)
        except (KeyError, ValueError):
            raise CheckpointError(f"{self._run.path} holds another run than before") from None
        return True

    def status(self) -> list[str]:
        """Return that of the game, with the steps of the weights."""
        score, *rest = self.match.status()
        return [score, f"step {self.steps:,}", *rest]


def _first(run: RunFolder) -> tuple[int, Config, Arrays]:
    """Return the newest weights of a run; wait for them as long as it trains. Raises `NoCheckpointError`."""
    is_waiting = False
    while True:
        is_training = run.is_training()
        if found := newest_weights(run):
            return found
        if not is_training:
            raise NoCheckpointError(f"{run.path} has no weights that could play, and is not being trained")
        if not is_waiting:
            tell(f"{run.path} has saved no weights yet: waiting for the first ones, ctrl-C ends this")
            is_waiting = True
        time.sleep(0.5)


def run(
    folder: Path | None, in_terminal: bool, max_steps: int | None, speed: float, as_json: bool,
    sticky: float | None = None, sample: bool = False, seed: int = 0, engine: str = DEFAULT_ENGINE,
) -> None:  # fmt: skip
    """Show the newest weights of the run in a folder at play, then print what points which of them won."""
    if folder is None:
        raise UsageError("--follow needs the folder of a run: fastpong play runs/fast-1 --follow")
    if in_terminal and not sys.stdout.isatty():
        raise UsageError("--follow with --terminal needs a terminal, and stdout is none")
    following = Following(folder, sticky, sample, seed, engine)
    seconds = following.match.config.frame_skip / FRAMES_PER_SECOND / speed
    show(following.pictures(max_steps), seconds, following.status, in_terminal)
    if following.ended:
        tell(f"{folder} is not being trained any more, and its last weights have played")
    if as_json:
        points = [{"step": step, "won": won, "lost": lost} for step, (won, lost) in following.points.items()]
        tell(json.dumps({"steps": following.match.steps, "points": points}), result=True)
        return
    for step, (won, lost) in following.points.items():
        tell(f"the weights after {step:,} steps: won {won} of {won + lost} points", result=True)
    tell(f"{following.match.agent}, seed {seed}", result=True)
