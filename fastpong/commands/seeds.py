"""``fastpong train --seeds``: a run for each of several seeds, one after the other, each in a process of its own."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from fastpong.config import check, new_config
from fastpong.errors import UsageError, printable, tell
from fastpong.parallel.machine import launched
from fastpong.runs.facts import parse_metrics
from fastpong.runs.folder import RunFolder
from fastpong.show.display import Display
from fastpong.show.panel import can_redraw
from fastpong.show.progress import clock
from fastpong.signals import Interrupts
from fastpong.training.session import Request

MOST = 1000
"""Seeds of one command, at most."""

_PROGRAM = (
    "from fastpong.parallel.machine import end_with_parent; end_with_parent(); from fastpong.main import main; main()"
)


def parse(text: str) -> list[int]:
    """Return seeds in the order of a text, as ``31-35`` or ``31,33,40-42``; raises `UsageError` for any other."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,19})(?:-([0-9]{1,19}))?\s*", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise UsageError(f"--seeds are numbers and ranges of them, as 31-35 or 31,33,40-42, not {part.strip()!r}")
        low, high = int(match[1]), int(match[2] or match[1])
        check("seed", high)
        if high - low >= MOST or len(seeds := seeds | dict.fromkeys(range(low, high + 1))) > MOST:
            raise UsageError(f"--seeds are at most {MOST:,}")
    return [*seeds]


class _Run:
    """The run of one seed: its folder, how it ended or what it does, and the last line of its metrics."""

    def __init__(self, seed: int, folder: Path):
        self.seed, self.folder = seed, RunFolder(folder)
        self.state = "not started"
        self.line: Mapping[str, Any] = {}

    def look(self) -> None:
        """Read how far it is."""
        with contextlib.suppress(UsageError):
            self.line = [self.line, *parse_metrics(self.folder.metrics)[0]][-1]

    def facts(self) -> dict[str, Any]:
        """Return what is known of it, for ``--json``."""
        line = {key: self.line.get(key) for key in ("wall_s", "steps", "score", "point_rate")}
        return {"seed": self.seed, "run": str(self.folder.path), **line, "reason": self.state}

    def row(self) -> list[str]:
        """Return its row of the table."""
        wall_s, steps, score, rate = list(self.facts().values())[2:6]
        numbers = [
            "–" if wall_s is None else f"{wall_s:.0f}",
            "–" if steps is None else f"{steps:,}",
            "–" if score is None else f"{score:.2f}",
            "–" if rate is None else f"{100 * rate:.1f} %",
        ]
        return [str(self.seed), *numbers, self.state]

    def __str__(self) -> str:
        if not self.line:
            return f"seed {self.seed}  {self.state}"
        _, _, steps, score, rate, state = self.row()
        time = clock(self.line["wall_s"])
        return f"seed {self.seed}  {time:>6}  {steps:>10} steps  score {score:>6}  points won {rate:>6}  {state}"


def run(seeds: str, request: Request, progress: str | None, log: str | None, as_json: bool) -> int:
    """Train a run for each seed, print a table of them, and return the exit code: 1 if any failed, 130 if interrupted.

    Each run gets the words of the command too, with its seed and folder. If `request` says to resume, those that have
    begun go on, and the others begin.
    """
    if launched()[1] > 1:
        raise UsageError("--seeds trains one run after the other: start it without mpiexec")
    Display(progress, log=log)  # refuses what no run could show
    path = request.folder or Path("runs") / new_config(request.changes).preset
    runs = [_Run(seed, Path(f"{path}-seed{seed}")) for seed in parse(seeds)]
    begun = [str(one.folder.path) for one in runs if one.folder.exists()]
    if begun and not request.resume:
        raise UsageError(f"{begun[0]} holds a run already: go on with --resume, or choose another --run")
    if request.resume and not begun:
        raise UsageError(f"there is no run in {runs[0].folder.path}, and none of another seed: leave out --resume")
    note: Callable[[str], None] = tell if progress != "none" else lambda text: None
    draw = _draw if progress in (None, "live") and can_redraw() else None
    with Interrupts() as interrupts:
        for one in runs:
            if not interrupts.seen:
                _train(one, request, interrupts, note, draw)
    failed = any(one.state.startswith("failed") for one in runs)
    if as_json:
        tell(json.dumps({"runs": [one.facts() for one in runs]}), result=True)
    else:
        tell(*_table(runs), result=True)
    again = "go on: the same command with --resume · " if failed or interrupts.seen else ""
    note(f"{again}compare them: fastpong plot {shlex.quote(str(path))}-seed*")
    return 130 if interrupts.seen else int(failed)


def _train(
    one: _Run, request: Request, interrupts: Interrupts, note: Callable[[str], None], draw: Callable[[str], None] | None
) -> None:
    """Train a run in a subprocess, which hears of an interruption and saves; tell how far it is, and how it ended."""
    command = [sys.executable, "-P", "-c", _PROGRAM, *_of_one(request.command)]  # -P: no files of the current directory
    command += ["--seed", str(one.seed), "--run", str(one.folder.path), "--progress", "none", "--json", "--no-mpi"]
    if one.folder.exists():
        command.append("--resume")
        one.look()
    if one.line and request.limits.minutes:  # those of all sessions
        left = request.limits.minutes - one.line["wall_s"] / 60
        if left < 0.001:
            one.state = "minutes"
            note(str(one))
            return
        command += ["--minutes", f"{left:.6f}"]
    one.state = "training"
    if not draw:
        note(f"seed {one.seed} is training in {one.folder.path}")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # In a session of its own it gets one signal, from here, of those that reach a whole group.
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True
        ) as process:  # fmt: skip
            asked, due, start = False, 0.0, time.monotonic()
            while process.poll() is None:
                if interrupts.seen and not asked:
                    process.send_signal(signal.SIGINT)
                    asked = True
                began = time.monotonic()
                if draw and began >= due:
                    one.look()
                    doing = "training" if one.line else f"starting, {clock(began - start)}"
                    one.state = "interrupted, it saves" if asked else _last_line(err) or doing
                    draw(str(one))
                    due = began + 20 * (time.monotonic() - began)  # metrics may be long, and cores few
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
        one.look()
        one.state = _how(process.returncode, out, err)
    if draw:
        draw("")
    note(str(one))


def _of_one(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a single run: without ``--seeds``, and ``--resume``, which not all need."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument == "--seeds":
            next(rest, None)
        elif argument != "--resume" and not argument.startswith("--seeds="):
            kept.append(argument)
    return kept


def _how(code: int, out: IO[bytes], err: IO[bytes]) -> str:
    """Return why a run stopped, from its exit code, its result and its last complaint."""
    if code == 0:
        out.seek(0)
        return str(json.loads(out.read())["reason"])
    if code in (130, -signal.SIGINT):
        return "interrupted"
    if code < 0:
        return f"failed: killed by {signal.Signals(-code).name}"
    return f"failed: {_last_line(err).removeprefix('fastpong: ')}"


def _last_line(file: IO[bytes]) -> str:
    """Return the last line of a file, in which a process may be writing: its place there does not move."""
    size = os.fstat(file.fileno()).st_size
    lines = os.pread(file.fileno(), 10_000, max(0, size - 10_000)).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _draw(text: str) -> None:
    """Draw a line over the one before."""
    with contextlib.suppress(OSError):
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
        sys.stderr.write(f"\r{printable(text)[: columns - 1]}\x1b[K")
        sys.stderr.flush()


def _table(runs: Sequence[_Run]) -> list[str]:
    """Return the lines of a table of runs."""
    rows = [["seed", "seconds", "steps", "score", "points won", "how it ended"], *(one.row() for one in runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)) + f"  {row[-1]}"
        for row in rows
    ]
