"""All envs of a run, in a few subprocesses that each step many: one gymnasium `AsyncVectorEnv`.

The envs are cut into groups (double-buffered sampling). A subprocess finds the next group's actions waiting in its
pipe when it has finished one, so the emulators run while the parent computes. A step costs one message and one wake-up
per subprocess; observations go through shared memory and are never copied or pickled.
"""

import functools
import multiprocessing
from collections.abc import Sequence
from multiprocessing import util
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Dict
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.vector.utils import batch_space

from fastpong.arrays import U8, Arrays
from fastpong.config import Config
from fastpong.envs.base import Envs
from fastpong.envs.division import check_workers, divide
from fastpong.envs.emulators import MAX_GROUPS, Emulators
from fastpong.envs.engine import DEFAULT_ENGINE, array_layout
from fastpong.envs.handle import WorkerHandle
from fastpong.envs.judge import usable
from fastpong.envs.memory import SharedArrays
from fastpong.envs.worker import GONE, start_method, work
from fastpong.errors import EnvError, UsageError
from fastpong.parallel.losses import Losses
from fastpong.parallel.machine import pin


class VectorEnv(AsyncVectorEnv, Envs):
    """Some envs of a run, over `workers` subprocesses, in `groups` groups. See `Envs`.

    As a plain gymnasium environment (`reset`, `step`) it has `env_count` sub-environments; what gymnasium starts as
    one are the `Emulators` of a subprocess.

    Parameters
    ----------
    env_count, workers : int
        Envs, and subprocesses (default: one per usable core).
    seed : int
        The run's seed.
    frame_skip, repeat_action_probability, num_actions, engine
        As for `Emulators`.
    groups : int
        Groups in flight, at most `env_count`.
    env_offset : int
        Global index of the first env.
    losses : Losses
        Is told of subprocesses that died or hung, and were replaced.
    pinned : bool
        Whether the subprocesses stay on their cores.
    extras : sequence of str
        Which of `fastpong.envs.engine.EXTRAS` are wanted in `arrays`.

    Raises
    ------
    UsageError
        For impossible numbers of envs or workers, or an unknown engine.
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
        engine: str = DEFAULT_ENGINE,
    ):
        if env_count < 1:
            raise UsageError(f"--envs must be 1 or more, not {env_count}")
        owned, cuts, members, self._parts = divide(
            env_count, check_workers(env_count, workers), min(groups, env_count, MAX_GROUPS)
        )
        engine = usable(engine)
        self.workers, self._in_flight = len(owned), [False] * len(members)
        self._memory = SharedArrays(array_layout(env_count, engine, extras))
        self._begin(range(env_offset, env_offset + env_count), members, self._memory.arrays, seed, engine)
        rules = frame_skip, repeat_action_probability, num_actions, engine
        self._functions = [
            functools.partial(Emulators, range(env_offset + own.start, env_offset + own.stop), cut, *rules)
            for own, cut in zip(owned, cuts, strict=True)
        ]
        self._work = functools.partial(work, self._memory, owned)
        self._pinned = pinned
        self.losses = losses or Losses()
        self.closed, self._handles = False, []
        try:
            with start_method(engine) as context:
                super().__init__(
                    self._functions,
                    shared_memory=False,  # gymnasium's has a name, and a lock for each array
                    copy=False,
                    context=context,
                    worker=self._work,
                    autoreset_mode=AutoresetMode.SAME_STEP,
                )
        except GONE:
            raise EnvError("the env subprocesses ended as they started: see what fastpong doctor says") from None
        del self.error_queue  # subprocesses answer with their errors; and its semaphores have names
        self.num_envs, one = env_count, cast(Dict, self.single_observation_space)
        self.observation_space = batch_space(one, env_count)
        self.action_space = batch_space(self.single_action_space, env_count)
        self.observations = {name: self.arrays[name] for name in one}
        for index, ends in enumerate(zip(self.processes, self.parent_pipes, strict=True)):
            self._pin(index)
            rows = self.arrays["rows"][owned[index].start : owned[index].stop]
            again = functools.partial(self._start, index)
            self._handles.append(WorkerHandle(f"env subprocess {index}", ends, again, rows, cuts[index], self.losses))
        # A program that ends without closing us: multiprocessing then waits for subprocesses, and they for messages.
        util.Finalize(self, _let_go, (self._handles,), exitpriority=0)

    @classmethod
    def of(
        cls, config: Config, workers: int | None = None, envs: range | None = None, losses: Losses | None = None,
        engine: str = DEFAULT_ENGINE,
    ) -> "VectorEnv":  # fmt: skip
        """Start the envs of a run, or some of them, with its rules."""
        envs = range(config.num_envs) if envs is None else envs
        return cls(
            len(envs), workers, config.seed, config.frame_skip, config.repeat_action_probability, config.num_actions,
            env_offset=envs.start, losses=losses, engine=engine,
        )  # fmt: skip

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """See `Envs`."""
        Envs.reset(self, seed=seed)
        return self.observations, {}

    def step_async(self, actions: Any) -> None:
        """Begin a step of all envs, as gymnasium's `step` does; `actions` is integer (env_count,)."""
        for group, members in enumerate(self.groups):
            self.send(group, np.asarray(actions, np.uint8)[members])

    def step_wait(self, timeout: float | None = None) -> tuple[Arrays, Any, Any, Any, dict[str, Any]]:
        """Finish it."""
        self._finish()
        return self.observations, self.rewards.astype(float), self.ended != 0, np.zeros(self.env_count, bool), {}

    def send(self, group: int, actions: U8) -> None:
        """See `Envs`."""
        assert not self._in_flight[group], "recv comes before send"
        head, chosen = self._next_step(group, actions)
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

    def _tell(self, message: bytes) -> None:
        for handle in self._handles:
            handle.send(message)
        for handle in self._handles:
            handle.wait()

    def close_extras(self, timeout: float | None = 2.0, terminate: bool = False) -> None:
        """Stop the subprocesses; they hold nothing that would have to be saved."""
        for handle in self._handles:
            handle.pipe.close()
        for handle in self._handles:
            handle.end(0.0 if terminate else timeout)
        self._memory.close()

    def _start(self, worker: int) -> tuple[BaseProcess, Connection]:
        """Start a subprocess that takes the place of one that gymnasium started."""
        with start_method(self.engine) as name:
            context: Any = multiprocessing.get_context(name)
            parent_pipe, pipe = context.Pipe()
            arguments = (worker, self._functions[worker], pipe, parent_pipe)
            process = context.Process(target=self._work, args=arguments, daemon=True)
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
