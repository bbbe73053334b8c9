"""Progress for people, in lines of text on stderr; `fastpong.show.panel` draws it.

Training does not depend on a reader: where nobody reads any more, nothing more is shown.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastpong.errors import tell
from fastpong.rollout.episode_stats import EpisodeStats


class Progress:
    """Where training shows how far it is; this one is silent, for all ranks but the first.

    The run ends as soon as `stop` is true.
    """

    stop = False

    def note(self, text: str) -> None:
        """Say something once."""

    def busy(self, text: str) -> None:
        """Say what is being done now; a display that can redraw counts its seconds until it hears something else."""
        self.note(text)

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Show a line of ``metrics.jsonl``."""

    def played(self, stats: EpisodeStats) -> None:
        """Tell of the new points and games."""

    def learned(self, steps: int, statistics: Mapping[str, Any]) -> None:
        """Tell of an update after so many steps."""

    def saved(self, steps: int, path: Path) -> None:
        """Tell of a checkpoint."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def clock(seconds: float) -> str:
    """Format seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe(line: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """One line of metrics in words; of a batch in those of its program, for presets ``ray`` and ``ppg``.

    `before` is the line before it: if that one is of the same batch, this one is told as other presets do.
    """
    new_batch = not before or before["updates"] != line["updates"]
    if new_batch and "batch_games" in line:
        return (
            f"Batch {line['updates']} computed {line['batch_games']} rollouts in {line['batch_s']:.1f} seconds, "
            f"running mean is {line['running_reward']:.4f}"
        )
    if new_batch and "window_reward" in line:
        return (
            f"{line['wall_s']:6.0f}, {line['steps']:010d} steps @ {line['steps_per_s']:6.0f}/s: "
            f"{line['window_reward']:5.1f} | {line['running_reward']:8.4f} @ {line['learning_rate']:.1e} lr, "
            f"{line['per_kup']:7.1f} r/Kup"
        )
    score = "–" if line["score"] is None else f"{line['score']:.2f}"
    rate = "–" if line["point_rate"] is None else f"{100 * line['point_rate']:.1f} %"
    return (
        f"{clock(line['wall_s']):>6}  {line['steps']:>10,} steps  {line['steps_per_s']:>6,.0f}/s  "
        f"{line['games']:>5,} games  score {score:>6}  points won {rate:>6}"
    )


class PlainProgress(Progress):
    """Lines of text."""

    def __init__(self, title: str):
        self._before: Mapping[str, Any] | None = None
        self.note(title)

    def note(self, text: str) -> None:
        """Print a line."""
        tell(text)

    def metrics(self, line: Mapping[str, Any]) -> None:
        """Print a line of metrics."""
        self.note(describe(line, self._before))
        self._before = line


class KarpathyProgress(PlainProgress):
    """Lines of text, and among them those of the program of preset ``karpathy``: for each game and, of one env, point.

    Points of many envs are too many to read, and their number, that of the games so far, would say nothing.
    """

    def __init__(self, title: str, envs: int):
        super().__init__(title)
        self._with_points = envs == 1

    def played(self, stats: EpisodeStats) -> None:
        """Print them in order; the number is that of the games so far."""
        number = stats.games - len(stats.new_games)
        points = stats.new_points if self._with_points else []
        events = sorted(
            [(game.steps, 0, game.score, running) for game, running in stats.new_games]
            + [(point.steps, 1, point.reward, 0.0) for point in points],
            key=lambda event: event[:2],
        )
        for _, is_point, reward, running in events:
            if is_point:
                self.note(f"ep {number}: game finished, reward: {reward}{' !!!!!!!!' if reward > 0 else ''}")
            else:
                number += 1
                self.note(f"resetting env. episode reward total was {reward}. running mean: {running:.4f}")
