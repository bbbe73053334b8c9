"""Strangers' inputs: each gives one printable line, or is read and then used; nothing else may happen.

    python -m bench.fuzz --inputs 1000000

One in two hundred is a checkpoint whose arrays, shapes, types, numbers or facts were changed, with a right digest, or
an archive of another structure; nineteen are the bytes of a checkpoint, changed, half of them with the digest repaired.
The others are settings files, lines of metrics, and texts of --set and of the launchers' variables. What is accepted
goes to who uses it: a trainer, the folder of a run that goes on, the candidates for ``best.npz``, an agent that plays,
the displays and plots. Of the checkpoints that are accepted and are not as before, `--resumed` go on for a batch in a
process of their own, which no signal may end. Devices, pipes, folders and files of holes stand in the place of each
file once. Then each single bit of a small checkpoint is flipped, which has to be refused. An input may take a second of
a core, and 100 MB of memory. Prints the counts, the most of both, and what went wrong; exit code 1 if anything did.
"""

import argparse
import contextlib
import functools
import gc
import io
import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console

from bench.common import parser
from bench.damage import (
    SMALL,
    TINY,
    WORDS,
    Saved,
    changed_archive,
    changed_bytes,
    changed_checkpoint,
    other_kinds,
    resealed,
)  # fmt: skip
from fastpong.commands.plot import run as plot
from fastpong.config import Config, make_config
from fastpong.config_sources import parse_assignments, read_toml, to_toml
from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import FastpongError, explain
from fastpong.limits import Limits
from fastpong.parallel.machine import LAUNCHERS, launched
from fastpong.runs.checkpoint import load, save
from fastpong.runs.facts import checked_line, parse_metrics
from fastpong.runs.find import load_weights, resumed_run
from fastpong.show.panel import Course, LiveProgress
from fastpong.show.progress import PlainProgress
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer

SECONDS, MEGABYTES = 1.0, 100
"""An input may take so much time of a core, and of memory."""

TOGETHER = 100
"""Inputs of small kinds that may take no more memory than one: to measure takes longer than they do."""


class Fuzz:
    """The inputs by kind: each takes a random generator, and raises nothing but `FastpongError`."""

    def __init__(self, folder: Path, seed: int, resumed: int):
        self._seed, self._file = seed, folder / "input"
        self._kept, self._left = folder / "accepted", resumed
        self._accepted: list[tuple[Path, Config]] = []
        self._kept.mkdir()
        self._saved = Saved(make_config("fast", SMALL), folder / "fast")
        self._tiny = Saved(make_config("karpathy", TINY), folder / "karpathy")
        self._toml = to_toml(self._saved.config, {"fastpong": "0.2.0"}).encode()
        line = dict(self._saved.facts.line or {})
        lines = [{**line, "steps": steps, "score": score} for steps, score in ((100, None), (200, -21.0), (300, -20.5))]
        self._lines = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        self.kinds: dict[str, tuple[float, Callable[[random.Random], object]]] = {
            "checkpoints, arrays and facts": (0.004, self._checkpoint),
            "checkpoints, archives": (0.001, self._archive),
            "checkpoints, bytes": (0.095, self._bytes),
            "settings files": (0.2, self._settings),
            "metrics": (0.6, self._metrics),
            "--set and launchers": (0.1, self._texts),
        }
        self._saved.use()  # what is loaded at the first use takes seconds, and memory
        self._tiny.use()
        self._plot(lines)
        self.counts, self.wrong = Counter[str](), list[str]()
        self.longest = dict.fromkeys(self.kinds, 0.0)  # seconds
        self.most = dict.fromkeys(self.kinds, 0.0)  # megabytes

    def run(self, inputs: int) -> None:
        """Try so many inputs."""
        for kind, (share, attempt) in self.kinds.items():
            together = 1 if kind.startswith("checkpoints") else TOGETHER
            for first in range(0, round(inputs * share), together):
                if first % TOGETHER == 0:
                    gc.collect()  # Python alone does so every few thousand inputs, which may be gigabytes
                before = forget_peak()
                for number in range(first, min(first + together, round(inputs * share))):
                    rng = random.Random(f"{self._seed} {kind} {number}")
                    self._try(kind, number, functools.partial(attempt, rng))
                self._note_memory(kind, first, before)
            print(f"{kind}: {time.process_time():.0f} s, {len(self.wrong)} wrong", file=sys.stderr, flush=True)

    def _note_memory(self, kind: str, first: object, before: int) -> None:
        megabytes = (peak() - before) / 1e6
        self.most[kind] = max(self.most.get(kind, 0.0), megabytes)
        if megabytes > MEGABYTES:
            self.wrong.append(f"{kind} from {first} on: took {megabytes:.0f} MB")

    def _try(self, kind: str, number: object, attempt: Callable[[], object]) -> None:
        self._began = time.process_time()
        try:
            attempt()
            self.counts[f"{kind}: read"] += 1
        except FastpongError as error:
            self.counts[f"{kind}: refused"] += 1
            with contextlib.redirect_stderr(io.StringIO()) as told:
                explain(error)
            line = told.getvalue().removesuffix("\n")
            if not line.isprintable() or len(line) > 2000:
                self.wrong.append(f"{kind} {number}: is told as {line!r:.300}")
        except Exception:
            self.wrong.append(f"{kind} {number}: {traceback.format_exc(limit=-3)}")
        seconds = time.process_time() - self._began
        self.longest[kind] = max(self.longest.get(kind, 0.0), seconds)
        if seconds > SECONDS:
            self.wrong.append(f"{kind} {number}: took {seconds:.1f} s")

    def other_kinds(self) -> None:
        """Put no regular files in the place of those that commands read: each is refused."""
        place = self._kept.parent / "place"
        readers: dict[str, Callable[[], object]] = {
            "checkpoint": lambda: load_weights(place),
            "config.toml": lambda: resumed_run(place.parent / "other", {}),
            "metrics": lambda: parse_metrics(place),
        }
        (place.parent / "other").mkdir()
        (place.parent / "other" / "config.toml").symlink_to(place)
        for kind, put in other_kinds(place).items():
            for name, read in readers.items():
                put()
                before = forget_peak()
                self._try("no regular files", f"{kind} as {name}", read)
                self._note_memory("no regular files", f"{kind} as {name}", before)
                (place.rmdir if kind == "folder" else place.unlink)()
        if self.counts["no regular files: read"]:
            self.wrong.append("what is no regular file was read")

    def flip_every_bit(self) -> None:
        """Flip each bit of a small checkpoint, one at a time: none may be read."""
        save(self._file, {"policy.w2": np.ones((3, 4), np.float32), "step": np.array(7)}, {"score": None})
        data = bytearray(self._file.read_bytes())
        for bit in range(8 * len(data)):
            data[bit // 8] ^= 1 << bit % 8
            self._file.write_bytes(data)
            data[bit // 8] ^= 1 << bit % 8
            try:
                load(self._file)
                self.wrong.append(f"bit {bit} may be flipped")
            except FastpongError:
                self.counts["single bits flipped: refused"] += 1

    def _checkpoint(self, rng: random.Random) -> None:
        changed_checkpoint(self._saved.file, self._saved.arrays, self._saved.about, rng)
        self._began = time.process_time()  # to make half a million numbers into words may take a second
        self._keep(self._saved, self._saved.use(), rng)

    def _archive(self, rng: random.Random) -> None:
        changed_archive(self._tiny.file, self._tiny.arrays, {**self._tiny.about, "format": 3}, rng)
        self._keep(self._tiny, self._tiny.use(), rng)

    def _bytes(self, rng: random.Random) -> None:
        data, repaired = changed_bytes(self._tiny.bytes, rng), rng.random() < 0.5
        self._tiny.file.write_bytes(resealed(data) if repaired else data)
        equal = self._tiny.use()
        assert equal or repaired, "a damaged checkpoint was read as another one"
        self._keep(self._tiny, equal, rng)

    def _keep(self, saved: Saved, equal: bool, rng: random.Random) -> None:
        """Keep some of the checkpoints that were accepted and are not as before."""
        if not equal and self._left > 0 and rng.random() < 0.2:
            self._left -= 1
            path = self._kept / f"{self._left}.npz"
            path.write_bytes(saved.file.read_bytes())
            self._accepted.append((path, saved.config))

    def _settings(self, rng: random.Random) -> None:
        self._file.write_bytes(changed_bytes(self._toml, rng))
        notes: list[str] = []
        changes, _ = read_toml(self._file, notes.append if rng.random() < 0.5 else None)
        config = make_config(str(changes.pop("preset", "fast")), changes)
        self._file.write_text(to_toml(config, {}))
        again, _ = read_toml(self._file)
        assert make_config(str(again.pop("preset")), again) == config

    def _metrics(self, rng: random.Random) -> None:
        self._file.write_bytes(changed_bytes(self._lines, rng))
        lines, _ = parse_metrics(self._file)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            display = PlainProgress("a run")
            for line in lines:
                display.metrics(line)
        assert all(text.isprintable() for text in told.getvalue().splitlines())
        if rng.random() < 0.01:
            console = Console(file=io.StringIO(), force_terminal=True, width=80)
            live = LiveProgress(console, "a run", Course(18.0, Limits(rng.choice((None, 10**6))), lines))
            for line in lines:
                live.metrics(line)
            live.close()
        if rng.random() < 0.001:
            self._plot(lines)
        for line in lines:
            checked_line(json.loads(json.dumps(line)))

    def _plot(self, lines: list[dict[str, Any]]) -> None:
        path = self._file.with_suffix(".jsonl")
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        plot([path], None, "minutes", "0,10", self._file.with_suffix(".svg"))

    def _texts(self, rng: random.Random) -> None:
        name = rng.choice([*asdict(self._saved.config), "x"])
        parse_assignments([f"{rng.choice((name, name, rng.choice(WORDS)))}={rng.choice((*WORDS, '0.5', '12'))}"])
        rank, size = rng.choice(LAUNCHERS)
        with patch.dict(os.environ, {rank: rng.choice(("0", "1", *WORDS[2:])), size: rng.choice(("2", *WORDS[2:]))}):
            launched()

    def resume(self) -> None:
        """Let a process go on from each checkpoint that was accepted and is another one."""
        for path, config in self._accepted:
            child = os.fork()
            if not child:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                os._exit(go_on(path, config))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            self.counts[f"accepted and resumed: {'a batch' if status == 0 else 'an error'}"] += 1
            if status not in (0, 1):
                self.wrong.append(f"resuming ends with {status}")


def go_on(path: Path, config: Config) -> int:
    """Train for a batch from a checkpoint; return 0, or 1 after an error of fastpong's own, or 2."""
    try:
        with VectorEnv.of(config, 1) as envs, contextlib.closing(Trainer(config, Actor(config, envs))) as trainer:
            trainer.load_state(load(path)[0])
            while not trainer.learn_if_due():
                trainer.step()
            return 0
    except FastpongError:
        return 1
    except BaseException:
        return 2


def forget_peak() -> int:
    """Let the kernel measure this process' peak of memory anew from here on; return the bytes that it has now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Return the most bytes that this process had at once since then."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def main() -> None:
    """Try the inputs, and print what came of them."""
    options = parser(__doc__)
    options.add_argument("--inputs", type=int, default=1_000_000)
    options.add_argument("--resumed", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    arguments: argparse.Namespace = options.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # a disk would have to sync a million times
        fuzz = Fuzz(Path(folder), arguments.seed, arguments.resumed)
        fuzz.run(arguments.inputs)
        fuzz.resume()
        fuzz.other_kinds()
        fuzz.flip_every_bit()
    most = {kind: [round(seconds, 3), round(fuzz.most[kind])] for kind, seconds in fuzz.longest.items()}
    facts = {"counts": fuzz.counts, "most for an input, s and MB": most, "wrong": len(fuzz.wrong)}
    print(json.dumps(facts, indent=1))
    sys.exit("\n".join(fuzz.wrong[:20]) or 0)


if __name__ == "__main__":
    main()
