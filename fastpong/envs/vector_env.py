"""All envs of a run, in a few subprocesses that each step many: one gymnasium `AsyncVectorEnv`.

The envs are cut into groups (double-buffered sampling). A subprocess finds the next group's actions waiting in its
pipe when it has finished one, so the emulators run while the parent computes. A step costs one message and one wake-up
per subprocess; observations go through shared memory and are never copied or pickled.
"""

import functools
import multiprocessing
import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import util
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from fastpong.arrays import U8, Arrays
from fastpong.config import Config
from fastpong.envs.base import SHARED, as_snapshot, restore_snapshot
from fastpong.envs.division import check_workers, divide
from fastpong.envs.emulators import Emulators, extra_layout, observation_space, state_layout
from fastpong.envs.handle import WorkerHandle
from fastpong.envs.memory import SharedArrays, zeros
from fastpong.envs.worker import GO_ON, GONE, MAX_GROUPS, RESET, SAVE, start_method, work
from fastpong.errors import EnvError, UsageError
from fastpong.parallel.losses import Losses
from fastpong.parallel.machine import CoreRotation, pin


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
    losses : Losses
        Is told of subprocesses that died or hung, and were replaced.
    pinned : bool
        Whether the subprocesses stay on their cores, instead of the rotation of their parent.
    extras : sequence of str
        Which arrays of `fastpong.envs.emulators.extra_layout` are wanted; they are in `extra`.

    Raises
    ------
    UsageError
        For impossible numbers of envs or workers.
    EnvError, LostError
        From any method, when a subprocess failed, or when too many were lost.
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
        losses: Losses | None = None,
        pinned: bool = False,
        extras: Sequence[str] = (),
    ):
        if env_count < 1:
            raise UsageError(f"--envs must be 1 or more, not {env_count}")
        division = divide(env_count, check_workers(env_count, workers), min(groups, env_count, MAX_GROUPS))
        self.workers, most = len(division.owned), len(division.owned[0])
        self.env_count, self.env_offset = env_count, env_offset
        self.rows, self.groups = division.rows, division.groups
        self._parts, self._most, self._in_flight = division.parts, most, [False] * len(division.groups)
        rules = seed, frame_skip, repeat_action_probability, num_actions
        self._functions = [
            functools.partial(Emulators, (env_offset + envs).tolist(), *rules, rows=most, splits=cuts)
            for envs, cuts in zip(division.owned, division.cuts, strict=True)
        ]
        self._pinned = pinned
        self.rotation: AbstractContextManager[None, None] = nullcontext() if pinned else CoreRotation(self.workers)
        self.losses = losses or Losses()
        spaces: Any = observation_space(most)
        layout = {**{name: (space.shape, space.dtype) for name, space in spaces.items()}, **state_layout(most)}
        layout |= {name: extra_layout(most)[name] for name in extras}
        self._memory = SharedArrays({name: ((self.workers, *shape), dtype) for name, (shape, dtype) in layout.items()})
        self.closed, self._handles = False, []
        try:
            with start_method() as context:
                super().__init__(
                    self._functions,
                    shared_memory=False,  # gymnasium's has a name, and a lock for each array
                    copy=False,
                    context=context,
                    worker=functools.partial(work, self._memory),
                    autoreset_mode=AutoresetMode.SAME_STEP,
                )
        except GONE:
            raise EnvError("the env subprocesses ended as they started: see what fastpong doctor says") from None
        del self.error_queue  # subprocesses answer with their errors; and its semaphores have names
        arrays = self._memory.arrays
        for index, ends in enumerate(zip(self.processes, self.parent_pipes, strict=True)):
            self._pin(index)
            states = {name: arrays[name][index] for name in state_layout(most)}
            again = functools.partial(self._start, index)
            self._handles.append(WorkerHandle(f"env subprocess {index}", ends, again, states, self.losses))
        # A program that ends without closing us: multiprocessing then waits for subprocesses, and they for messages.
        util.Finalize(self, _let_go, (self._handles,), exitpriority=0)
        self.observations = {name: arrays[name] for name in SHARED}
        self.screens, self.rewards, self.ended = (in_rows(arrays[name]) for name in SHARED)
        self.extra = {name: in_rows(arrays[name]) for name in extras}

    @classmethod
    def of(
        cls, config: Config, workers: int | None = None, envs: range | None = None, losses: Losses | None = None
    ) -> "VectorEnv":
        """Start the envs of a run, or some of them, with its rules."""
        envs = range(config.num_envs) if envs is None else envs
        return cls(
            len(envs), workers, config.seed, config.frame_skip, config.repeat_action_probability, config.num_actions,
            env_offset=envs.start, losses=losses,
        )  # fmt: skip

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """See `Envs`; with a seed, from that run seed."""
        self._finish_steps()
        for handle in self._handles:
            handle.send(RESET + struct.pack("q", GO_ON if seed is None else seed))
        for handle in self._handles:
            handle.wait_for_all()
        return self.observations, {}

    def step_async(self, actions: Any) -> None:
        """Begin a step of all envs, as gymnasium's `step` does; `actions` is integer (workers, most envs of one)."""
        for group, members in enumerate(self.groups):
            self.send(group, np.asarray(actions, np.uint8).reshape(-1)[self.rows[members]])

    def step_wait(self, timeout: float | None = None) -> tuple[Arrays, Any, Any, Any, dict[str, Any]]:
        """Finish it. Rewards and ends are in the observation."""
        self._finish_steps()
        ends = np.zeros(self.workers, bool)
        return self.observations, np.zeros(self.workers), ends, ends.copy(), {}

    def send(self, group: int, actions: U8) -> None:
        """See `Envs`."""
        assert not self._in_flight[group], "recv comes before send"
        head, chosen = bytes([group]), actions.tobytes()
        for worker, part in self._parts[group]:
            self._handles[worker].send(head + chosen[part])
        self._in_flight[group] = True

    def recv(self, group: int) -> None:
        """See `Envs`."""
        if not self._in_flight[group]:
            return
        for worker, _ in self._parts[group]:
            self._handles[worker].wait()
        self._in_flight[group] = False

    def _finish_steps(self) -> None:
        for group in range(len(self.groups)):
            self.recv(group)

    def snapshot(self) -> Arrays:
        """See `Envs`. A `restore` of it, with any number of workers, continues bit for bit."""
        self._finish_steps()
        for handle in self._handles:
            handle.send(SAVE)
        for handle in self._handles:
            handle.wait_for_all()
        states = {name: in_rows(self._memory.arrays[name]) for name in state_layout(0)}
        return as_snapshot(states, self)

    def restore(self, arrays: Arrays) -> None:
        """See `Envs`."""
        self._finish_steps()
        states = zeros(state_layout(len(self.screens)))
        restore_snapshot(arrays, states, self)
        for index, handle in enumerate(self._handles):
            rows = slice(index * self._most, (index + 1) * self._most)
            handle.restore({name: array[rows] for name, array in states.items()})
        for handle in self._handles:
            handle.wait_for_all()

    def close_extras(self, timeout: float | None = 2.0, terminate: bool = False) -> None:
        """Stop the subprocesses; they hold nothing that would have to be saved."""
        for handle in self._handles:
            handle.pipe.close()
        for handle in self._handles:
            handle.end(0.0 if terminate else timeout)
        self._memory.close()

    def _start(self, worker: int) -> tuple[BaseProcess, Connection]:
        """Start a subprocess that takes the place of one that gymnasium started."""
        with start_method() as name:
            context: Any = multiprocessing.get_context(name)
            parent_pipe, pipe = context.Pipe()
            arguments = (self._memory, worker, self._functions[worker], pipe, parent_pipe)
            process = context.Process(target=work, args=arguments, daemon=True)
            process.start()
        pipe.close()
        self.processes[worker], self.parent_pipes[worker] = process, parent_pipe
        self._pin(worker)
        return process, parent_pipe

    def _pin(self, worker: int) -> None:
        if self._pinned:
            pin(self.processes[worker].pid, worker, self.workers)

    def __enter__(self) -> "VectorEnv":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _let_go(handles: list[WorkerHandle]) -> None:
    for handle in handles:
        handle.pipe.close()


def in_rows(array: Any) -> Any:
    """Return a view of an array (workers, envs of one, …) in which envs are rows."""
    return array.reshape(-1, *array.shape[2:])
