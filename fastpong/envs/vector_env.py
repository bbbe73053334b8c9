"""All envs of a run, in a few subprocesses that each step many: one gymnasium `AsyncVectorEnv`.

The envs are cut into groups (double-buffered sampling). A subprocess finds the next group's actions waiting in its
pipe when it has finished one, so the emulators run while the parent computes. A step costs one message and one wake-up
per subprocess; observations go through shared memory and are never copied or pickled.
"""

import functools
import pickle
import signal
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from fastpong.arrays import I8, U8, Arrays
from fastpong.config import Config
from fastpong.envs.base import SHARED, as_arrays, as_states
from fastpong.envs.emulators import Emulators
from fastpong.envs.worker import GONE, MAX_GROUPS, STEPPED, start_method, work
from fastpong.errors import FastpongError, UsageError
from fastpong.parallel.machine import CoreRotation, usable_cores


class EnvError(FastpongError):
    """An env subprocess failed or died."""


def check_workers(env_count: int, workers: int | None, local_size: int = 1) -> int:
    """Return the number of subprocesses for some envs; raises `UsageError`.

    By default it is one per usable core, divided among the `local_size` ranks that share these cores.
    """
    if workers is None:
        return min(env_count, max(1, usable_cores() // local_size))
    if workers < 1:
        raise UsageError(f"--workers must be 1 or more, not {workers}")
    if workers > env_count:
        raise UsageError(
            f"{workers} workers have too little to do with {env_count} envs: use --workers {env_count} or fewer"
        )
    return workers


class VectorEnv(AsyncVectorEnv):
    """Some envs of a run, over `workers` subprocesses, in `groups` groups. See `Envs`.

    As a plain gymnasium environment (`reset`, `step`) each of its `num_envs` sub-environments is one
    subprocess with all its envs (`Emulators`), padded to the same number.

    Parameters
    ----------
    env_count, workers : int
        Envs, and subprocesses (default: one per usable core).
    seed, frame_skip, repeat_action_probability, num_actions
        As for `Emulators`.
    groups : int
        Groups in flight, at most `env_count`.
    env_offset : int
        Global index of the first env.

    Raises
    ------
    UsageError
        For impossible numbers of envs or workers.
    EnvError
        From any method, when a subprocess failed or died.
    """

    def __init__(
        self,
        env_count: int = 64,
        workers: int | None = None,
        seed: int = 0,
        frame_skip: int = 4,
        repeat_action_probability: float = 0.25,
        num_actions: int = 2,
        groups: int = 2,
        env_offset: int = 0,
    ):
        if env_count < 1:
            raise UsageError(f"--envs must be 1 or more, not {env_count}")
        workers = check_workers(env_count, workers)
        groups = min(groups, env_count, MAX_GROUPS)
        owned = np.array_split(np.arange(env_count), workers)
        most = len(owned[0])
        self.env_count, self.workers, self.env_offset = env_count, workers, env_offset
        self.rows = np.zeros(env_count, np.int64)
        members: list[list[int]] = [[] for _ in range(groups)]
        # Which workers take part in a group, how many of its envs each owns, and where these stand in it.
        self._parts: list[list[tuple[int, slice]]] = [[] for _ in range(groups)]
        functions = []
        for worker, envs in enumerate(owned):
            self.rows[envs] = worker * most + np.arange(len(envs))
            sizes = [len(part) for part in np.array_split(envs, groups)]
            turn = worker % groups  # which group gets a remainder differs, so that groups are of one size
            cuts = np.cumsum(sizes[turn:] + sizes[:turn])[:-1]
            for group, part in enumerate(np.split(envs, cuts)):
                if len(part):
                    start = len(members[group])
                    self._parts[group].append((worker, slice(start, start + len(part))))
                    members[group] += part.tolist()
            rules = ((env_offset + envs).tolist(), seed, frame_skip, repeat_action_probability, num_actions)
            functions.append(functools.partial(Emulators, *rules, rows=most, splits=cuts.tolist()))
        self.groups = [np.array(group, np.int64) for group in members]
        self._in_flight, self._most = [False] * groups, most
        self.rotation: AbstractContextManager[None, None] = CoreRotation(workers)
        self.closed = False
        body: Any = work  # gymnasium 1.3 passes one argument less than 1.4
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
            raise EnvError(
                "the env subprocesses ended as they started; in a script, create VectorEnv under "
                "if __name__ == '__main__'"
            ) from None
        self.screens: U8 = self.observations["screens"].reshape(workers * most, 210, 160)
        self.rewards: I8 = self.observations["rewards"].reshape(-1)
        self.ended: I8 = self.observations["ended"].reshape(-1)

    @classmethod
    def of(cls, config: Config, workers: int | None = None, envs: range | None = None) -> "VectorEnv":
        """Start the envs of a run, or some of them, with its rules."""
        envs = range(config.num_envs) if envs is None else envs
        return cls(
            len(envs), workers, config.seed, config.frame_skip, config.repeat_action_probability, config.num_actions,
            env_offset=envs.start,
        )  # fmt: skip

    def send(self, group: int, actions: U8) -> None:
        """See `Envs`."""
        assert not self._in_flight[group], "recv comes before send"
        head, chosen = bytes([group]), actions.tobytes()
        for worker, part in self._parts[group]:
            try:
                self.parent_pipes[worker].send_bytes(head + chosen[part])
            except GONE:
                raise self._death(worker) from None
        self._in_flight[group] = True

    def recv(self, group: int) -> None:
        """See `Envs`."""
        if not self._in_flight[group]:
            return
        for worker, _ in self._parts[group]:
            self._reply(worker)
        self._in_flight[group] = False

    def snapshot(self) -> Arrays:
        """See `Envs`. A `restore` of it, with any number of workers, continues bit for bit."""
        for group in range(len(self.groups)):
            self.recv(group)
        for worker in range(self.workers):
            self._ask(worker, "snapshot", None)
        states = sorted(state for worker in range(self.workers) for state in self._reply(worker))
        return as_arrays(states, self)

    def restore(self, arrays: Arrays) -> None:
        """See `Envs`."""
        states = as_states(arrays)
        for worker in range(self.workers):
            mine = np.flatnonzero(self.rows // self._most == worker).tolist()
            self._ask(worker, "restore", {self.env_offset + env: states[env] for env in mine})
        for worker in range(self.workers):
            self._reply(worker)
        for name in SHARED:
            getattr(self, name)[self.rows] = arrays[name]

    def close_extras(self, timeout: float | None = 2.0, terminate: bool = False) -> None:
        """Stop the subprocesses; they hold nothing that would have to be saved."""
        for pipe in self.parent_pipes:
            if pipe is not None:
                pipe.close()
        for process in self.processes:
            process.join(0.0 if terminate else timeout)
            if process.is_alive():
                process.kill()
                process.join()
        self.error_queue.close()

    def __enter__(self) -> "VectorEnv":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, worker: int, command: str, data: object) -> None:
        try:
            self.parent_pipes[worker].send((command, data))
        except GONE:
            raise self._death(worker) from None

    def _reply(self, worker: int) -> Any:
        """Return a subprocess's answer; None for a step."""
        try:
            message = self.parent_pipes[worker].recv_bytes()
        except GONE:
            raise self._death(worker) from None
        if message == STEPPED:
            return None
        result, good = pickle.loads(message)
        if not good:
            _, kind, text, trace = self.error_queue.get()
            raise EnvError(f"an env subprocess failed: {kind.__name__}: {text}") from RuntimeError(trace)
        return result

    def _death(self, worker: int) -> EnvError:
        process = self.processes[worker]
        process.join(1.0)
        code = process.exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"exited with {code}"
        return EnvError(f"env subprocess {worker} (pid {process.pid}) {how}")
