"""All games of a run, in a few subprocesses that each step many: one gymnasium `AsyncVectorEnv`.

The games are cut into groups. A subprocess finds the next group's actions waiting in its pipe when it has
finished one, so the emulators run while the parent computes. A step costs one message and one wake-up per
subprocess; observations go through shared memory and are never copied or pickled.
"""

import functools
import os
import signal
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from fastpong.cores import Turns, usable_cores
from fastpong.errors import FastpongError, UsageError
from fastpong.pong import PongGames
from fastpong.practice import NO_PRACTICE, Attempts
from fastpong.serving import GONE, STEPPED, rest_of, serve, start_method, step_head, unpickled
from fastpong.shards import Layout, pieces, string_together

LAYOUT: Layout = {
    "steps": 0, "held": 0, "emulators": "emulator_sizes", "emulator_sizes": 0, "practice_states": "practice_sizes",
    "practice_sizes": 0, "screens": 0, "rewards": 0, "ended": 0, "practising": 0, "planned": 0,
}  # fmt: skip
"""Of the arrays of a snapshot, see `fastpong.shards`."""

_SHARED = ("screens", "rewards", "ended", "practising", "planned")


class GamesError(FastpongError):
    """A game subprocess failed or died."""


def check_workers(envs: int, workers: int | None, neighbours: int = 1) -> int:
    """Return the number of subprocesses for some games; raises `UsageError`.

    By default it is one per usable core, divided among the `neighbours` ranks that share these cores.
    """
    if workers is None:
        return min(envs, max(1, usable_cores() // neighbours))
    if workers < 1:
        raise UsageError(f"--workers must be 1 or more, not {workers}")
    if workers > envs:
        raise UsageError(f"{workers} workers have too little to do with {envs} games: use --workers {envs} or fewer")
    return workers


class Games(AsyncVectorEnv):
    """Some games of a run, over `workers` subprocesses, in `groups` groups.

    After a `reset`, use `recv` and `send` in turn for each group. Between them the group's rows of the observation
    arrays hold still. The arrays are indexed by slot: game n stands in slot ``slots[n]``.

    As a plain gymnasium environment (`reset`, `step`) each of its `num_envs` sub-environments is one
    subprocess with all its games (`PongGames`), padded to the same number.

    Parameters
    ----------
    envs, workers : int
        Games, and subprocesses (default: one per usable core).
    seed, frame_skip, sticky, actions
        As for `PongGames`.
    groups : int
        Groups in flight, at most `envs`.
    first : int
        Global index of the first game: it keys the games' noise. Everywhere else game n is the n-th of these.

    Attributes
    ----------
    groups : list of int64 (n,)
        The games of each group, ascending.
    slots : int64 (envs,)
        The slot of each game.
    attempts : Attempts
        How lost points are practised from the next `send` on, see `fastpong.practice`; not at first.
    turns : Turns
        To be entered for each step of all games: see `fastpong.cores`.
    screens, rewards, ended, practising, planned
        uint8 (slots, 210, 160) and four times int8 (slots,): the shared arrays, see `fastpong.pong.space_of`.

    Raises
    ------
    UsageError
        For impossible numbers of games or workers.
    GamesError
        From any method, when a subprocess failed or died.
    """

    def __init__(
        self,
        envs: int = 64,
        workers: int | None = None,
        seed: int = 0,
        frame_skip: int = 4,
        sticky: float = 0.25,
        actions: int = 2,
        groups: int = 2,
        first: int = 0,
    ):
        if envs < 1:
            raise UsageError(f"--envs must be 1 or more, not {envs}")
        workers = check_workers(envs, workers)
        groups = min(groups, envs)
        owned = np.array_split(np.arange(envs), workers)
        most = len(owned[0])
        self.envs, self.workers, self.first = envs, workers, first
        self.slots = np.zeros(envs, np.int64)
        members: list[list[int]] = [[] for _ in range(groups)]
        # Which workers take part in a group, how many of its games each owns, and where these stand in it.
        self._parts: list[list[tuple[int, slice]]] = [[] for _ in range(groups)]
        functions = []
        for worker, games in enumerate(owned):
            self.slots[games] = worker * most + np.arange(len(games))
            sizes = [len(part) for part in np.array_split(games, groups)]
            turn = worker % groups  # which group gets a remainder differs, so that groups are of one size
            cuts = np.cumsum(sizes[turn:] + sizes[:turn])[:-1]
            for group, part in enumerate(np.split(games, cuts)):
                if len(part):
                    start = len(members[group])
                    self._parts[group].append((worker, slice(start, start + len(part))))
                    members[group] += part.tolist()
            rules = ((first + games).tolist(), seed, frame_skip, sticky, actions)
            functions.append(functools.partial(PongGames, *rules, slots=most, splits=cuts.tolist()))
        self.groups = [np.array(group, np.int64) for group in members]
        self._in_flight, self._most = [False] * groups, most
        self._told: Attempts | None = None  # the attempts that are in `_heads`
        self._heads: list[bytes] = []
        self.turns = Turns(workers)
        self.attempts: Attempts = NO_PRACTICE
        self.closed = False
        body: Any = serve  # gymnasium 1.3 passes one argument less than 1.4
        try:
            with start_method() as context:
                super().__init__(
                    functions,
                    shared_memory=True,
                    copy=False,
                    context=context,
                    worker=body,
                    autoreset_mode=AutoresetMode.SAME_STEP,
                )
        except GONE:
            raise GamesError(
                "the game subprocesses ended as they started; in a script, create Games under if __name__ == '__main__'"
            ) from None
        self._descriptors = [pipe.fileno() for pipe in self.parent_pipes]
        self.screens: npt.NDArray[np.uint8] = self.observations["screens"].reshape(workers * most, 210, 160)
        self.rewards: npt.NDArray[np.int8] = self.observations["rewards"].reshape(-1)
        self.ended: npt.NDArray[np.int8] = self.observations["ended"].reshape(-1)
        self.practising: npt.NDArray[np.int8] = self.observations["practising"].reshape(-1)
        self.planned: npt.NDArray[np.int8] = self.observations["planned"].reshape(-1)

    def send(self, group: int, actions: npt.NDArray[np.uint8]) -> None:
        """Step the games of a group with these actions, uint8 (n,) in the order of ``groups[group]``."""
        assert not self._in_flight[group], "recv comes before send"
        if self.attempts != self._told:
            self._told = self.attempts
            self._heads = [step_head(number, self.attempts, self._most) for number in range(len(self.groups))]
        head, told = self._heads[group], actions.tobytes()
        for worker, part in self._parts[group]:
            try:
                os.write(self._descriptors[worker], head + told[part].ljust(self._most))
            except GONE:
                raise self._death(worker) from None
        self._in_flight[group] = True

    def recv(self, group: int) -> None:
        """Wait until the group's step is done: then its slots hold the screens and the step's outcome."""
        if not self._in_flight[group]:
            return
        for worker, _ in self._parts[group]:
            try:
                answer = os.read(self._descriptors[worker], len(STEPPED))
            except GONE:
                raise self._death(worker) from None
            if answer != STEPPED:
                self._from(worker, answer)
        self._in_flight[group] = False

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """State of all games, after waiting for the steps in flight: arrays by name, in game order.

        A `restore` of it, with any number of workers, continues bit for bit.
        """
        for group in range(len(self.groups)):
            self.recv(group)
        for worker in range(self.workers):
            self._to(worker, "snapshot", None)
        states = sorted(state for worker in range(self.workers) for state in self._from(worker))
        _, steps, held, emulators, practices = zip(*states, strict=True)
        return {
            "steps": np.array(steps, np.int64),
            "held": np.array(held, np.uint8),
            **string_together(emulators, "emulators", "emulator_sizes"),
            **string_together(practices, "practice_states", "practice_sizes"),
            **{name: getattr(self, name)[self.slots] for name in _SHARED},
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Put all games back to a `snapshot`; takes the place of `reset`."""
        emulators = pieces(arrays["emulators"], arrays["emulator_sizes"])
        practices = pieces(arrays["practice_states"], arrays["practice_sizes"])
        states = list(zip(arrays["steps"].tolist(), arrays["held"].tolist(), emulators, practices, strict=True))
        most = len(self.screens) // self.workers
        for worker in range(self.workers):
            mine = np.flatnonzero(self.slots // most == worker).tolist()
            self._to(worker, "restore", {self.first + game: states[game] for game in mine})
        for worker in range(self.workers):
            self._from(worker)
        for name in _SHARED:
            getattr(self, name)[self.slots] = arrays[name]

    def close_extras(self, timeout: float | None = 2.0, terminate: bool = False) -> None:
        """Stop the subprocesses; they hold nothing that would need a farewell."""
        for pipe in self.parent_pipes:
            if pipe is not None:
                pipe.close()
        for process in self.processes:
            process.join(0.0 if terminate else timeout)
            if process.is_alive():
                process.kill()
                process.join()
        self.error_queue.close()

    def __enter__(self) -> "Games":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _to(self, worker: int, command: str, data: object) -> None:
        try:
            self.parent_pipes[worker].send((command, data))
        except GONE:
            raise self._death(worker) from None

    def _from(self, worker: int, begun: bytes = b"") -> Any:
        """Return a subprocess's answer, of which some bytes have been read."""
        try:
            message = rest_of(self._descriptors[worker], begun)
        except GONE:
            raise self._death(worker) from None
        if message == STEPPED:
            return None
        result, good = unpickled(message)
        if not good:
            _, kind, text, trace = self.error_queue.get()
            raise GamesError(f"a game subprocess failed: {kind.__name__}: {text}") from RuntimeError(trace)
        return result

    def _death(self, worker: int) -> GamesError:
        process = self.processes[worker]
        process.join(1.0)
        code = process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"exited with {code}"
        return GamesError(f"game subprocess {worker} (pid {process.pid}) {how}")
