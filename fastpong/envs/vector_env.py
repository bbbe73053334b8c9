"""All envs of a run, in a few subprocesses that each step many: one gymnasium `AsyncVectorEnv`.

The envs are cut into groups (double-buffered sampling). A subprocess finds the next group's actions waiting in its
pipe when it has finished one, so the emulators run while the parent computes. A step costs one message and one wake-up
per subprocess; observations go through shared memory and are never copied or pickled. A caller that would wait long
steps a few envs itself.
"""

import functools
import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Dict
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.vector.utils import batch_space

from fastpong.arrays import U8, Arrays
from fastpong.config import Config
from fastpong.envs.base import Envs, images_of, unfinished
from fastpong.envs.division import acting_workers, check_workers, divide, own_envs
from fastpong.envs.emulators import MAX_GROUPS, Emulators
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.memory import SCREENS, SharedArrays, fields
from fastpong.envs.own_envs import OwnEnvs
from fastpong.envs.process import Process, end_all, start_method
from fastpong.envs.verify import usable
from fastpong.envs.worker import GONE, work
from fastpong.envs.worker_handle import WorkerHandle
from fastpong.errors import EnvError, UsageError
from fastpong.parallel.replaced import Losses
from fastpong.system import pin


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
    own : int
        How many envs, the last ones, this process steps itself when it would wait for the subprocesses.
    images : sequence of str
        Which of `fastpong.envs.engine.IMAGES` are wanted in `arrays`.

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
        own: int = 0,
        images: Sequence[str] = SCREENS,
        engine: str = DEFAULT_ENGINE,
    ):
        if env_count < 1:
            raise UsageError(f"num_envs must be 1 or more, not {env_count}")
        workers = check_workers(env_count - own, workers)
        owned, cuts, members, self._parts = divide(env_count, workers, min(groups, env_count, MAX_GROUPS), own)
        engine = usable(engine)
        self.workers, self._in_flight = workers, [False] * len(members)
        self._memory = SharedArrays(env_count, fields(engine, images))
        self._begin(range(env_offset, env_offset + env_count), members, self._memory.arrays, seed, engine)
        rules = frame_skip, repeat_action_probability, num_actions, engine, images
        functions = [
            functools.partial(Emulators, range(env_offset + some.start, env_offset + some.stop), cut, *rules)
            for some, cut in zip(owned, cuts, strict=True)
        ]
        body, method = functools.partial(work, self._memory, owned), start_method(engine)
        self.losses = losses or Losses()
        self.closed, self._broken = False, False
        self._handles: list[WorkerHandle] = []
        try:
            super().__init__(
                functions[:workers],
                shared_memory=False,  # gymnasium's has a name, and a lock for each array
                copy=False,
                context=method,
                worker=body,
                autoreset_mode=AutoresetMode.SAME_STEP,
            )
        except GONE:
            raise EnvError("the env subprocesses ended as they started: see what fastpong doctor says") from None
        self.num_envs, one = env_count, cast(Dict, self.single_observation_space)
        self.observation_space = batch_space(one, env_count)
        self.action_space = batch_space(self.single_action_space, env_count)
        self.observations = {name: self.arrays[name] for name in one}
        for index, (process, pipe) in enumerate(zip(self.processes, self.parent_pipes, strict=True)):
            place = functools.partial(pin, worker=index, workers=self.workers) if pinned else _leave
            place(process.pid)
            again = functools.partial(
                _start, method, body, functions[index], index, place, self.processes, self.parent_pipes
            )
            rows = self.arrays["rows"][owned[index].start : owned[index].stop]
            name, ends = f"env subprocess {index}", (cast(Process, process), pipe)
            self._handles.append(WorkerHandle(name, ends, again, rows, cuts[index], self.losses))
        mine = {name: array[env_count - own :] for name, array in self.arrays.items()}
        here = [OwnEnvs(function(), mine) for function in functions[workers:]]
        self._takers: list[WorkerHandle | OwnEnvs] = [*self._handles, *here]

    @classmethod
    def of(
        cls, config: Config, workers: int | None = None, envs: range | None = None, losses: Losses | None = None,
        engine: str = DEFAULT_ENGINE, images: Sequence[str] = (),
    ) -> "VectorEnv":  # fmt: skip
        """Start the envs of a run, or some of them, with its rules; the caller acts while they step.

        By default they have the images that the run's policy sees.
        """
        envs = range(config.num_envs) if envs is None else envs
        workers = acting_workers(len(envs), workers, engine)
        return cls(
            len(envs), workers, config.seed, config.frame_skip, config.repeat_action_probability, config.num_actions,
            env_offset=envs.start, losses=losses, own=own_envs(len(envs), workers, engine),
            images=images or images_of(config), engine=engine,
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
        if self._broken or self._in_flight[group]:
            raise unfinished()
        self._broken = True  # until all have it
        head, chosen = self._next_step(group, actions)
        for taker, part in self._parts[group]:
            self._takers[taker].send(head + chosen[part])
        self._in_flight[group] = True
        self._broken = False

    def recv(self, group: int) -> None:
        """See `Envs`."""
        if self._broken:
            raise unfinished()
        if not self._in_flight[group]:
            return
        self._broken = True  # until all have answered
        for taker, _ in reversed(self._parts[group]):  # this process first, while the others work
            self._takers[taker].wait()
        self._in_flight[group] = False
        self._broken = False

    def _clear(self) -> None:
        if self._broken:  # nobody knows who has been told what: an interrupt comes between any two lines
            for taker in self._takers:
                taker.restart()
            self._in_flight = [False] * len(self.groups)
            self._broken = False
        else:
            self._finish()

    def _tell(self, message: bytes) -> None:
        self._broken = True
        for taker in self._takers:
            taker.send(message)
        for taker in self._takers:
            taker.wait()
        self._broken = False

    def _check_spaces(self) -> None:
        """Ask nobody: gymnasium would wait without a limit, and one function makes all envs."""

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Stop the subprocesses; they hold nothing that would have to be saved."""
        for handle in self._handles:
            handle.pipe.close()
        seconds = 0.0 if terminate else 2.0 if timeout is None else timeout
        end_all([handle.process for handle in self._handles], seconds)
        self._memory.close()

    def __enter__(self) -> "VectorEnv":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _start(
    method: str, body: Callable[..., None], function: Callable[[], Emulators], index: int,
    place: Callable[[int | None], None], processes: list[Any], pipes: list[Connection],
) -> tuple[Process, Connection]:  # fmt: skip
    """Start a subprocess that takes the place of one that gymnasium started. It holds no env: that would never end."""
    context: Any = multiprocessing.get_context(method)
    parent_pipe, pipe = context.Pipe()
    process: Process = context.Process(target=body, args=(index, function, pipe, parent_pipe))
    process.start()
    pipe.close()
    processes[index], pipes[index] = process, parent_pipe
    place(process.pid)
    return process, parent_pipe


def _leave(process: int | None) -> None:
    """Leave a subprocess to the system's choice of cores."""
