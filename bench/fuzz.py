"""Mutated inputs: each has to give fastpong's own error, or be read as what it is; nothing else may happen.

    python -m bench.fuzz --inputs 1000000

One in a hundred is a checkpoint whose arrays, shapes, types, numbers or facts were changed, with a right digest; nine
are the bytes of a checkpoint, changed, half of them with the digest repaired. The others are settings files, lines of
metrics, and texts of --set and of the launchers' variables. What a checkpoint holds also goes into a trainer. Of those
that are accepted and are not as before, `--resumed` go on for a batch in a process of their own, which no signal may
end. Then each single bit of a small checkpoint is flipped, which has to be refused. Prints the counts, the longest
times, and what went wrong; exit code 1 if anything did.
"""

import argparse
import contextlib
import json
import os
import random
import resource
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

from bench.common import parser
from fastpong.arrays import DIGEST, Arrays, digest
from fastpong.config import Config, make_config
from fastpong.config_sources import parse_assignments, read_toml, to_toml
from fastpong.envs.base import LocalEnvs
from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import FastpongError
from fastpong.parallel.machine import LAUNCHERS, launched
from fastpong.training.actor import Actor
from fastpong.training.checkpoint import load, save
from fastpong.training.facts import parse_metrics
from fastpong.training.runs import load_weights
from fastpong.training.trainer import Trainer

SMALL = {
    "num_envs": 4, "hidden_units": 64, "batch_size": 400, "minibatch_size": 96, "update_epochs": 2, "late_by_step": 0,
}  # fmt: skip
TINY = {"num_envs": 2, "hidden_units": 8, "batch_games": 1}
SECONDS, MEGABYTES = 1.0, 100
"""An input may take so long, and all of them together so much more memory."""

EXTREMES = (0, 1, -1, 2, 127, 255, 2**15, -(2**31), 2**31 - 1, 2**62, -(2**62), float("nan"), float("inf"), 1e30)
WORDS = ("", "\x00", "é", "nan", "-1", "1e999", "9" * 400, "[", "]]", '"', "\n", "=", "true", "\x1b[31m", "{" * 60)


def trained(config: Config) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of a small run after some batches, and facts about it."""
    with contextlib.closing(Trainer(config, Actor(config, LocalEnvs.of(config, range(config.num_envs))))) as trainer:
        trainer.start()
        for _ in range(250):
            trainer.step()
            trainer.learn_if_due()
        about = {"config": asdict(config), "steps": trainer.stats.steps, "wall_s": 1.0, "score": -20.0}
        return {name: array.copy() for name, array in trainer.state().items()}, {**about, "best_score": -20.0}


def changed_array(array: Any, rng: random.Random) -> Any:
    """Return an array with other values, another shape, or of another type."""
    kind = rng.randrange(8)
    with np.errstate(all="ignore"):
        if kind < 4 and array.size:
            array = array.copy()
            for _ in range(rng.choice((1, 1, 3, 20))):
                place = rng.randrange(array.size)
                limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
                value = rng.choice(EXTREMES) if limits is None or rng.random() < 0.5 else int(array.flat[place]) + 1
                if limits:
                    value = int(max(limits.min, min(limits.max, value if abs(value) < 1e20 else 0)))  # NaN: 0
                array.flat[place] = value
            return array
        if kind == 4:
            return array[rng.randrange(2) : len(array) - rng.randrange(3)] if array.ndim else array.reshape(1)
        if kind == 5:
            return np.concatenate([array, array[-1:]]) if array.ndim else np.array(7)
        if kind == 6:
            return array.astype(rng.choice(("int8", "int64", "float32", "float64", "uint8", "<U3", "complex64")))
        return array.reshape(array.shape[::-1]) if array.ndim > 1 else array[::-1].copy() if array.ndim else array


def changed_facts(facts: Any, rng: random.Random) -> Any:
    """Return the facts about a checkpoint with another value somewhere."""
    if isinstance(facts, dict) and facts and rng.random() < 0.9:
        name = rng.choice(list(facts))
        return {**facts, name: changed_facts(facts[name], rng)}
    return rng.choice((None, 7, -1, 1e300, "x", [], {}, True, 2**70, [[1]], "\x1b[31m"))


def changed_checkpoint(path: Path, arrays: Arrays, about: dict[str, Any], rng: random.Random) -> None:
    """Write a checkpoint with some arrays or facts changed."""
    arrays, name = dict(arrays), rng.choice(list(arrays))
    kind = rng.randrange(20)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[rng.choice(WORDS).replace("\x00", "").replace("/", "") + name] = arrays[name]
    elif kind == 2:
        other = rng.choice(list(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif kind == 3:
        about = changed_facts(about, rng) if rng.random() < 0.1 else changed_facts({**about}, rng) or about
        about = about if isinstance(about, dict) else {"config": about}
    else:
        for name in rng.sample(list(arrays), rng.choice((1, 1, 2))):
            arrays[name] = changed_array(arrays[name], rng)
    save(path, arrays, about)


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with some changed, cut off, repeated or put in."""
    new, kind = bytearray(data), rng.randrange(5)
    place = rng.randrange(len(new))
    if kind < 2:
        for _ in range(rng.choice((1, 1, 4, 60))):
            new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del new[place : place + rng.choice((1, 8, len(new)))]
    elif kind == 3:
        new[place:place] = new[place : place + rng.choice((1, 40, 4000))]
    else:
        new[place : place + rng.choice((0, 1, 8))] = rng.choice(WORDS).encode()
    return bytes(new)


class Saved:
    """A run's checkpoint, and a trainer that loads others in its place."""

    def __init__(self, config: Config, file: Path):
        self.config, (self.arrays, self.about) = config, trained(config)
        self.trainer = Trainer(config, Actor(config, LocalEnvs.of(config, range(config.num_envs))))
        save(file, self.arrays, self.about)
        self.bytes = file.read_bytes()

    def load(self, file: Path) -> bool:
        """Load a checkpoint as `play` does, and into the trainer, as `--resume` does; return whether it is this one."""
        arrays, _ = load(file)
        with contextlib.suppress(FastpongError):
            load_weights(file)
        self.trainer.load_state(arrays)
        return all(np.array_equal(a, self.arrays[name], equal_nan=a.dtype.kind == "f") for name, a in arrays.items())


class Fuzz:
    """The inputs by kind: each takes a random generator, and raises nothing but `FastpongError`."""

    def __init__(self, folder: Path, seed: int, resumed: int):
        self._seed, self._file = seed, folder / "input"
        self._kept, self._left = folder / "accepted", resumed
        self._accepted: list[tuple[Path, Config]] = []
        self._kept.mkdir()
        self._saved = Saved(make_config("fast", SMALL), self._file)
        self._tiny = Saved(make_config("karpathy", TINY), self._file)
        self._toml = to_toml(self._saved.config, {"fastpong": "0.2.0"}).encode()
        self._lines = b"".join(b'{"steps": %d, "score": -20.5, "point_rate": null}\n' % n for n in range(0, 800, 100))
        self.kinds: dict[str, tuple[float, Callable[[random.Random], object]]] = {
            "checkpoints, arrays and facts": (0.01, self._checkpoint),
            "checkpoints, bytes": (0.09, self._bytes),
            "settings files": (0.2, self._settings),
            "metrics": (0.6, self._metrics),
            "--set and launchers": (0.1, self._texts),
        }
        self.counts, self.wrong = Counter[str](), list[str]()
        self.longest = dict.fromkeys(self.kinds, 0.0)  # seconds

    def run(self, inputs: int) -> None:
        """Try so many inputs."""
        for kind, (share, attempt) in self.kinds.items():
            for number in range(round(inputs * share)):
                began = time.perf_counter()
                try:
                    attempt(random.Random(f"{self._seed} {kind} {number}"))
                    self.counts[f"{kind}: read"] += 1
                except FastpongError:
                    self.counts[f"{kind}: refused"] += 1
                except Exception:
                    self.wrong.append(f"{kind} {number}: {traceback.format_exc(limit=-3)}")
                seconds = time.perf_counter() - began
                self.longest[kind] = max(self.longest[kind], seconds)
                if seconds > SECONDS:
                    self.wrong.append(f"{kind} {number}: took {seconds:.1f} s")

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
        changed_checkpoint(self._file, self._saved.arrays, self._saved.about, rng)
        self._keep(self._saved, self._saved.load(self._file), rng)

    def _bytes(self, rng: random.Random) -> None:
        data, repaired = changed_bytes(self._tiny.bytes, rng), rng.random() < 0.5
        if repaired:
            data = data[:-DIGEST] + digest(data[:-DIGEST])
        self._file.write_bytes(data)
        equal = self._tiny.load(self._file)
        assert equal or repaired, "a damaged checkpoint was read as another one"
        self._keep(self._tiny, equal, rng)

    def _keep(self, saved: Saved, equal: bool, rng: random.Random) -> None:
        """Keep some of the checkpoints that were accepted and are not as before."""
        if not equal and self._left > 0 and rng.random() < 0.2:
            self._left -= 1
            path = self._kept / f"{self._left}.npz"
            path.write_bytes(self._file.read_bytes())
            self._accepted.append((path, saved.config))

    def _settings(self, rng: random.Random) -> None:
        self._file.write_bytes(changed_bytes(self._toml, rng))
        changes, _ = read_toml(self._file)
        make_config(str(changes.pop("preset", "fast")), changes)

    def _metrics(self, rng: random.Random) -> None:
        self._file.write_bytes(changed_bytes(self._lines, rng))
        lines, _ = parse_metrics(self._file)
        assert all(isinstance(line["steps"], int) for line in lines)

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


def main() -> None:
    """Try the inputs, and print what came of them."""
    options = parser(__doc__)
    options.add_argument("--inputs", type=int, default=1_000_000)
    options.add_argument("--resumed", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    arguments: argparse.Namespace = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzz = Fuzz(Path(folder), arguments.seed, arguments.resumed)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fuzz.run(arguments.inputs)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
        if more > MEGABYTES:
            fuzz.wrong.append(f"memory grew by {more:.0f} MB")
        fuzz.resume()
        fuzz.flip_every_bit()
    longest = {kind: round(seconds, 3) for kind, seconds in fuzz.longest.items()}
    facts = {"counts": fuzz.counts, "longest, s": longest, "memory, MB more": round(more), "wrong": len(fuzz.wrong)}
    print(json.dumps(facts, indent=1))
    sys.exit("\n".join(fuzz.wrong[:20]) or 0)


if __name__ == "__main__":
    main()
