"""Faults against a training: afterwards its arrays have to be those of a run that nobody disturbed.

    python -m bench.faults crash --rounds 200 [--ranks 2 --longest 8]
    python -m bench.faults soak --minutes 30

`crash` starts a run, kills a random one of its processes after `--shortest` (0.2) to `--longest` seconds (-9), then all
that is left, resumes it, and so on. `soak` lets it run, with a fault every `--every` seconds: an env subprocess killed,
or stopped, or stopped and continued; a disk on which nothing can be written for some seconds; the newest checkpoint
damaged; all killed, or told to end, and resumed; nobody reading its output any more. The late phase and exploring
starts are active.
Prints how often what was done, how often the run was resumed, and whether all arrays are equal; `soak` also what the
run takes of the machine in its first and its last third. Exit code 1 if anything is left or differs.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.common import output_of, parser, train_command
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder

SETTINGS = {
    "hidden_units": 64, "batch_size": 400, "minibatch_size": 96, "update_epochs": 2, "late_win_rate": 0,
    "log_interval": 200, "checkpoint_interval": 800,
}  # fmt: skip
"""A small run whose late phase begins at once, with some checkpoints a second."""

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "mpiexec"
END = 10**8  # steps


class Run:
    """A training in `folder`, started and resumed, with its processes."""

    def __init__(self, folder: Path, ranks: int = 1):
        self.folder = RunFolder(folder)
        self._launcher = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []

    def command(self, steps: int) -> list[str]:
        """Return the command that begins or resumes the run."""
        if self.folder.exists():
            options = ["train", "--resume", "--run", str(self.folder.path), "--target", "22", "--steps", str(steps)]
            return [*self._launcher, sys.executable, "-m", "fastpong", *options, "--progress", "lines"]
        settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        return [*self._launcher, *train_command(self.folder.path, "--envs", "8", *settings, "--steps", str(steps))]

    def start(self) -> None:
        """Begin or resume it, in a session of its own, with a `reader` of what it prints."""
        self.reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert self.reader.stdin
        self.process = subprocess.Popen(
            self.command(END), stdout=subprocess.DEVNULL, stderr=self.reader.stdin, start_new_session=True
        )
        self.reader.stdin.close()

    def processes(self) -> list[psutil.Process]:
        """Return the process and all that descend from it, as many as live."""
        try:
            return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def workers(self) -> list[psutil.Process]:
        """Return the env subprocesses: grandchildren, by the fork server."""
        return [process for process in self.processes() if process.ppid() != self.process.pid][1:]

    def kill(self, *family: psutil.Process) -> None:
        """Kill it, and wait until nothing of it, and of the `family` that it had before, is left."""
        family += tuple(self.processes())
        self.process.kill()
        self.process.wait()
        self.reader.kill()
        self.reader.wait()
        _, left = psutil.wait_procs({*family}, timeout=30)
        if left:
            sys.exit(f"processes are left: {[process.cmdline() for process in left]}")

    def finish(self, steps: int) -> dict[str, Any]:
        """Let it go on to so many steps, and return its arrays."""
        output_of(self.command(steps))
        return self.folder.newest()[0]

    def steps(self) -> int:
        """Return the steps of its newest checkpoint."""
        return self.folder.newest().facts.steps if self.folder.checkpoints() else 0


def differences(run: Run, folder: Path, ranks: int = 1) -> tuple[int, list[str]]:
    """Let a run end, and another one from the beginning; return its steps, and the arrays that differ."""
    steps = run.steps() + 2000
    ours = run.finish(steps)
    theirs = Run(folder, ranks).finish(steps)
    if int(theirs["learner.updates"]) == 0:
        sys.exit("nothing was learned: use more --rounds")
    return steps, [name for name in ours.keys() | theirs.keys() if not same(ours.get(name), theirs.get(name))]


def same(a: Any, b: Any) -> bool:
    """Whether two arrays are equal, bit for bit."""
    return a is not None and b is not None and a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=True))


def crash(folder: Path, rounds: int, ranks: int, shortest: float, longest: float, rng: random.Random) -> dict[str, Any]:
    """Kill and resume a run so often; tell how often it went on from a checkpoint."""
    run, killed, resumed = Run(folder / "crashed", ranks), Counter[str](), 0
    for _ in range(rounds):
        resumed += run.steps() > 0
        run.start()
        time.sleep(rng.uniform(shortest, longest))
        victims = run.processes()
        victim = rng.choice(victims)  # may have ended by now
        killed["the main process" if victim.pid == run.process.pid else "another one"] += 1
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
        time.sleep(rng.uniform(0.0, 0.5))
        run.kill(*victims)
    steps, different = differences(run, folder / "whole", ranks)
    facts = {"rounds": rounds, "ranks": ranks, "killed": killed, "from a checkpoint": resumed}
    return {**facts, "steps": steps, "different": different}


class Soak:
    """A run, its faults by name, and what it takes of the machine."""

    def __init__(self, folder: Path, rng: random.Random):
        self.run, self._rng = Run(folder), rng
        self.resumed = 0
        self.taken: list[dict[str, float]] = []
        self.faults: dict[str, Callable[[], object]] = {
            "worker killed": lambda: self._worker().kill(),
            "killed and resumed": self._again,
            "nothing can be written": self._full_disk,
            "worker stopped": lambda: self._worker().suspend(),
            "told to end and resumed": lambda: self._again(signal.SIGTERM),
            "worker stopped and continued": self._pause,
            "checkpoint damaged": self._damage,
            "nobody reads its output": lambda: self.run.reader.kill(),
        }

    def measure(self) -> None:
        """Note what the run takes now."""
        family = self.run.processes()
        self.taken.append(
            {
                "Pss, MB": sum(process.memory_full_info().pss for process in family) / 1e6,
                "descriptors": psutil.Process(self.run.process.pid).num_fds(),
                "processes": len(family),
                "files in /dev/shm": len(list(Path("/dev/shm").iterdir())),
            }
        )

    def _worker(self) -> psutil.Process:
        return self._rng.choice(self.run.workers())

    def _again(self, how: signal.Signals = signal.SIGKILL) -> None:
        if how == signal.SIGTERM:
            os.killpg(self.run.process.pid, how)
            self.run.process.wait(60)
        self.run.kill()
        self.run.start()
        self.resumed += 1

    def _full_disk(self) -> None:
        main, (soft, hard) = self.run.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(main, resource.RLIMIT_FSIZE, (1000, hard))
        time.sleep(3.0)
        resource.prlimit(main, resource.RLIMIT_FSIZE, (soft, hard))

    def _pause(self) -> None:
        worker = self._worker()
        worker.suspend()
        time.sleep(2.0)
        worker.resume()

    def _damage(self) -> None:
        self.run.kill()
        newest = self.run.folder.checkpoints()[0]
        data = bytearray(newest.read_bytes())
        data[self._rng.randrange(len(data))] ^= 1 << self._rng.randrange(8)
        newest.write_bytes(data)
        self.run.start()
        self.resumed += 1


def soak(folder: Path, minutes: float, every: float, rng: random.Random) -> dict[str, Any]:
    """Let a run go on for so long, with a fault every so many seconds."""
    soak, done = Soak(folder / "soaked", rng), Counter[str]()
    soak.run.start()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        for name, fault in soak.faults.items():
            time.sleep(every)
            if soak.run.process.poll() is not None:
                sys.exit(f"the run ended by itself before: {name}")
            soak.measure()
            fault()
            done[name] += 1
    time.sleep(every)
    soak.measure()
    replaced = read_metrics(soak.run.folder.metrics)[-1]["replaced"]
    soak.run.kill()
    steps, different = differences(soak.run, folder / "whole")
    third = max(1, len(soak.taken) // 3)
    taken = {
        key: [statistics.median(one[key] for one in part) for part in (soak.taken[:third], soak.taken[-third:])]
        for key in soak.taken[0]
    }
    facts = {"faults": done, "resumed": soak.resumed, "replaced since": replaced, "taken, first and last third": taken}
    return {**facts, "steps": steps, "different": different}


def main() -> None:
    """Run one of both."""
    options = parser(__doc__)
    options.add_argument("what", choices=("crash", "soak"))
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--ranks", type=int, default=1)
    options.add_argument("--shortest", type=float, default=0.2)
    options.add_argument("--longest", type=float, default=3.0)
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--every", type=float, default=20.0)
    options.add_argument("--seed", type=int, default=0)
    arguments: argparse.Namespace = options.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.what == "crash":
            seconds = arguments.shortest, arguments.longest
            result = crash(Path(folder), arguments.rounds, arguments.ranks, *seconds, rng)
        else:
            result = soak(Path(folder), arguments.minutes, arguments.every, rng)
    print(json.dumps(result, indent=1))
    sys.exit(bool(result["different"]))


if __name__ == "__main__":
    main()
