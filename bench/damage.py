"""Inputs of strangers, made from good ones: bytes, arrays, facts, archives and kinds of files; and who reads them."""

import contextlib
import copy
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from fastpong.agent import Agent
from fastpong.arrays import DIGEST, Arrays, digest
from fastpong.config import Config, changed
from fastpong.envs.base import LocalEnvs
from fastpong.errors import FastpongError
from fastpong.runs.checkpoint import load, save
from fastpong.runs.facts import Facts, load_facts
from fastpong.runs.find import load_weights
from fastpong.runs.folder import RunFolder
from fastpong.training.actor import Actor
from fastpong.training.evaluate import choose_best
from fastpong.training.trainer import Trainer

SMALL = {
    "num_envs": 4, "hidden_units": 64, "batch_size": 400, "minibatch_size": 96, "update_epochs": 2, "late_win_rate": 0,
    "eval_games": 0,
}  # fmt: skip
TINY = {"num_envs": 2, "hidden_units": 8, "batch_games": 1, "eval_games": 0}
EXTREMES = (0, 1, -1, 2, 127, 255, 2**15, -(2**31), 2**31 - 1, 2**62, -(2**62), float("nan"), float("inf"), 1e30)
WORDS = ("", "\x00", "é", "nan", "-1", "1e999", "9" * 400, "[", "]]", '"', "\n", "=", "true", "\x1b[31m", "{" * 60)


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


def resealed(data: bytes) -> bytes:
    """Return the bytes of a checkpoint with a right digest."""
    return data[:-DIGEST] + digest(data[:-DIGEST])


def changed_archive(path: Path, arrays: Arrays, about: dict[str, Any], rng: random.Random) -> None:
    """Write an archive whose structure is not what `save` makes, with a right digest."""
    buffer, kind = io.BytesIO(), rng.randrange(6)
    packed = zipfile.ZIP_DEFLATED if kind == 4 else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", packed, allowZip64=True) as archive:
        for name, array in {"about": np.array(json.dumps(about)), **arrays}.items():
            file = io.BytesIO()
            np.save(file, array)
            archive.writestr(f"{name}.npy", file.getvalue())
        if kind == 0:  # many members that are all the same bytes
            for number in range(rng.choice((2, 300, 3000))):
                again = copy.copy(archive.filelist[-1])
                again.filename = f"x{number}.npy"
                archive.filelist.append(again)
        elif kind == 1:  # a header that tells of more, or less, than there is
            file = io.BytesIO()
            shape = rng.choice(((1 << 44,), (5,), (-1,), (1 << 20, 1 << 20), (), (0, 1 << 62)))
            npy.write_array_header_1_0(file, {"shape": shape, "fortran_order": rng.random() < 0.5, "descr": "<i8"})
            archive.writestr("step.npy", file.getvalue() + bytes(48))
        elif kind == 2:  # sizes that are not those of the members
            member = rng.choice(archive.filelist)
            member.file_size = rng.choice((0, 1, member.file_size + 1, 1 << 31, 1 << 40))
        elif kind == 3:  # a place that is not in the file
            rng.choice(archive.filelist).header_offset = rng.choice((1, 1 << 20, 1 << 31))
        elif kind == 4:
            archive.writestr("x.npy", bytes(rng.choice((1 << 10, 1 << 24, 1 << 26))))
        else:
            archive.writestr(rng.choice(("../x.npy", "/x", "a" * 60_000, "\x1b[31m", "about.npy")), b"")
    data = buffer.getvalue()[:-2] + DIGEST.to_bytes(2, "little")
    path.write_bytes(data + digest(data))


def other_kinds(path: Path) -> dict[str, Callable[[], object]]:
    """Return what may stand in the place of a file: each puts it there."""

    def sparse() -> None:
        path.touch()
        os.truncate(path, 40 << 30)

    return {
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "sparse": sparse,
        "device": lambda: path.symlink_to("/dev/zero"),
        "link to nothing": lambda: path.symlink_to("nothing"),
        "link to itself": lambda: path.symlink_to(path.name),
    }


SCREEN = np.full((210, 160), 57, np.uint8)


def trained(config: Config) -> tuple[Arrays, Facts]:
    """Return the arrays of a small run after some batches, and facts about it."""
    with contextlib.closing(Trainer(config, Actor(config, LocalEnvs.of(config, range(config.num_envs))))) as trainer:
        trainer.start()
        for _ in range(250):
            trainer.step()
            trainer.learn_if_due()
        steps, metrics = trainer.stats.steps, trainer.metrics()
        line = {"wall_s": 1.0, "steps": steps, "steps_per_s": 1e3, **metrics}
        facts = Facts(config, steps, 1.0, -20.0, -20.0, steps, trainer.sampler.engine, line)
        return {name: array.copy() for name, array in trainer.state().items()}, facts


class Saved:
    """A run's folder with two checkpoints, and all that reads the newest one when it is another."""

    def __init__(self, config: Config, folder: Path):
        self.config, (self.arrays, self.facts) = config, trained(config)
        self.trainer = Trainer(config, Actor(config, LocalEnvs.of(config, range(config.num_envs))))
        self._folder, self._reads, run = folder, 0, RunFolder(folder)
        run.create(config, {})
        self.file = run.save_checkpoint(self.arrays, self.facts)
        self.about, self.bytes = json.loads(json.dumps(self.facts.about())), self.file.read_bytes()
        self._older = self.file.with_name("step_000000000001.npz")
        save(self._older, self.arrays, {**self.about, "steps": 1})
        self._good = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path != self.file}

    def use(self) -> bool:
        """Play with the newest checkpoint, choose it, and go on from it; return whether it is the one of before.

        Raises `FastpongError` unless the trainer takes it. What cannot even be read is given to all readers one time in
        twenty: it is the same for each.
        """
        self._reads += 1
        with contextlib.nullcontext() if self._reads % 20 else contextlib.suppress(FastpongError):
            load(self.file)
        with contextlib.suppress(FastpongError):
            config, weights = load_weights(self.file)
            agent = Agent(config, weights, self.file.name)
            agent.act(SCREEN)
            assert str(agent).isprintable()
        try:
            run = RunFolder(self._folder)
            candidate = self._folder / "candidates" / self.file.name
            candidate.parent.mkdir(exist_ok=True)
            candidate.write_bytes(self.file.read_bytes())
            choose_best(changed(self.config, {"eval_games": 1}), run, 1, lambda text: None)  # one is no choice
            newest = run.newest(self._check)
            run.go_on_from(newest)
            run.cut_metrics(newest.facts.steps, newest.facts.line)
            assert newest.complaints or newest.facts.steps == load_facts(self.file)[1].steps
        finally:
            self._put_back()
        arrays, _ = load(self.file)
        self.trainer.load_state(arrays)
        return all(np.array_equal(a, self.arrays[name], equal_nan=a.dtype.kind == "f") for name, a in arrays.items())

    def _check(self, arrays: Arrays, facts: Facts) -> None:
        self.trainer.check(arrays)

    def _put_back(self) -> None:
        damaged = self.file.with_name(f"{self.file.name}.damaged")
        if damaged.exists():
            damaged.replace(self.file)
        for path in [path for path in self._folder.rglob("*") if path.is_file()]:
            if path != self.file and path not in self._good:
                path.unlink()
        for path, data in self._good.items():
            path.write_bytes(data)
