"""Processes on a Ray cluster: one is joined or started, and the processes get their places on it."""

import contextlib
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastpong
from fastpong.errors import FastpongError, UsageError, missing
from fastpong.parallel.machine import usable_cores

PLACEMENTS = ("pack", "spread")

REACH_SECONDS, PLACE_SECONDS, START_SECONDS, LEAVE_SECONDS = 15.0, 10.0, 120.0, 10.0
"""How long to wait for a cluster to answer, for its cores, for processes to start, and to leave it."""

_OBJECTS = 128 << 20  # bytes of shared memory for weights and batches on a Ray that is started here


class ClusterError(FastpongError):
    """A Ray cluster cannot be used."""


@dataclass(frozen=True)
class Placing:
    """Which Ray cluster, and what to ask of it.

    Without an `address` ("auto", or HOST:PORT) a Ray is started on this machine, and ends with this process. There are
    `actors` of `cpus` cores each, by default as many as fit; `placement` puts them on few machines ("pack") or on many
    ("spread"). With `ship` the cluster gets this package from here.
    """

    address: str | None = None
    actors: int | None = None
    cpus: float = 1.0
    placement: str = "pack"
    ship: bool = False


def placing_of(
    ray: bool, address: str | None, actors: int | None, cpus: float, placement: str, ship: bool
) -> Placing | None:
    """Return what is asked of Ray, if anything is; raises `UsageError` for options that nothing uses."""
    placing = Placing(address, actors, cpus, placement, ship)
    if ray or address is not None:
        return placing
    if placing != Placing():
        raise UsageError("--actors and the other options of Ray need --ray or --ray-address")
    return None


class Cluster:
    """Actors on a Ray cluster, at most `most`, each an instance of the class `body`; to be used with ``with``.

    `members` are Ray's handles to them. They live until the end of the ``with``, beyond the end of a run.

    Raises `ClusterError` if the cluster cannot be reached, lacks the cores or has other versions, and `UsageError` if
    Ray is missing.
    """

    def __init__(self, body: type, placing: Placing, most: int):
        self._check(placing, most)
        self._placing = placing
        self._ray = _connect(placing)
        self._body = self._ray.remote(body)
        try:
            fit = math.floor(self._ray.available_resources().get("CPU", 0.0) / placing.cpus)
            self.count = placing.actors or max(1, min(most, fit))
            self._group = self._place()
            self.members = [self._start(index) for index in range(self.count)]
        except BaseException:
            self._ray.shutdown()
            raise

    @staticmethod
    def _check(placing: Placing, most: int) -> None:
        if placing.placement not in PLACEMENTS:
            raise UsageError(f"--placement is one of {', '.join(PLACEMENTS)}, not '{placing.placement}'")
        if placing.actors and placing.actors > most:
            raise UsageError(
                f"{placing.actors} actors have too little to do with {most} envs: use --actors {most} or fewer"
            )

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ClusterError):  # its GCS is gone: the run goes on to its end, then Ray's core ends it
            _within(LEAVE_SECONDS, self._leave, "Ray does not end")

    def _leave(self) -> None:
        for member in self.members:
            with contextlib.suppress(Exception):
                self._ray.kill(member)
        with contextlib.suppress(Exception):
            self._ray.util.remove_placement_group(self._group)
        self._ray.shutdown()

    def put(self, value: Any) -> Any:
        """Put a value where all processes can read it; return a reference."""
        return self._ray.put(value)

    def result(self, reference: Any) -> Any:
        """Wait for the result of a call; raises `LookupError` if the process, or its machine, is lost."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayActorError:
            raise LookupError from None
        except self._ray.exceptions.RayTaskError as error:
            raise ClusterError(f"a Ray actor failed: {error.cause!r}") from error

    def replace(self, index: int) -> None:
        """Start another process in the place of one that is lost, on a machine that is left."""
        with contextlib.suppress(Exception):  # it may live on, where it cannot be reached
            self._ray.kill(self.members[index])
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                self.members[index] = self._start(index)
                return
            except ClusterError:  # for some seconds Ray believes that the machine is still there
                if time.monotonic() > until:
                    raise
                time.sleep(1.0)

    def _place(self) -> Any:
        cpus = self._placing.cpus
        group = self._ray.util.placement_group([{"CPU": cpus}] * self.count, self._placing.placement.upper())
        if not group.wait(PLACE_SECONDS):
            total, free = (
                resources().get("CPU", 0) for resources in (self._ray.cluster_resources, self._ray.available_resources)
            )
            raise ClusterError(
                f"{self.count} actors with {cpus:g} cores each do not fit: the cluster has {total:g} cores, {free:g} "
                "of them free; use fewer --actors or --actor-cpus"
            )
        return group

    def _start(self, index: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        place = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=index)
        options = {"num_cpus": self._placing.cpus, "max_restarts": 0, "scheduling_strategy": place}
        member = self._body.options(**options).remote()
        try:
            theirs = self._ray.get(member.versions.remote(), timeout=START_SECONDS)
        except self._ray.exceptions.GetTimeoutError:
            raise ClusterError(
                f"actor {index} found no place within {START_SECONDS:.0f} s: the cluster has too few cores left"
            ) from None
        except self._ray.exceptions.RayError as error:
            reason = next((line for line in reversed(str(error).splitlines()) if "Error: " in line), str(error))
            raise ClusterError(
                f"actor {index} does not start: {reason.strip()}; install fastpong on every machine, or use --ray-ship"
            ) from None
        for name, version in versions().items():
            if theirs[name] != version:
                raise ClusterError(
                    f"actor {index} has {name} {theirs[name]}, this process {version}: install the same on every "
                    "machine, or use --ray-ship for fastpong"
                )
        return member


def versions() -> dict[str, str]:
    """Return what has to be the same on all machines, by name."""
    import platform
    import zlib
    from importlib.metadata import version

    source = zlib.crc32(b"".join(path.read_bytes() for path in sorted(_package().rglob("*.py"))))
    return {
        "fastpong": f"{fastpong.__version__} (source {source:08x})",
        "python": platform.python_version(),
        **{name: version(name) for name in ("numba", "numpy", "ale-py")},
    }


def _package() -> Path:
    return Path(fastpong.__file__).parent


def _connect(placing: Placing) -> Any:
    """Join or start Ray and return the module."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise missing("--ray", "Ray", "ray") from None
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if placing.ship:
        options["runtime_env"] = {"py_modules": [str(_package())]}
    address = placing.address
    if address is None:
        cores = max(usable_cores(), math.ceil((placing.actors or 1) * placing.cpus))
        options |= {"num_cpus": cores, "object_store_memory": _OBJECTS, "include_dashboard": False}
        ray.init("local", **options)
        return ray
    if address != "auto":
        _knock(address)
    _within(REACH_SECONDS, lambda: ray.init(address, **options), f"no Ray cluster answers at {address}")
    return ray


def _knock(address: str) -> None:
    """Open a connection and close it: Ray itself would try for ever."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--ray-address is auto or HOST:PORT, not '{address}'")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except OSError as error:
        raise ClusterError(f"no Ray cluster at {address}: {error.strerror or error}") from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drop what is written to stderr: Ray's C++ core warns every second while nobody answers."""
    stderr = os.dup(2)
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _within(seconds: float, work: Callable[[], object], complaint: str) -> None:
    """Do something in a thread, which is left alone if it takes longer."""
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    with _quiet():
        thread.start()
        thread.join(seconds)
    if thread.is_alive():
        raise ClusterError(f"{complaint} within {seconds:.0f} s; if it asks for a token, set RAY_AUTH_MODE=token")
    if failed:
        raise ClusterError(f"{complaint}: {str(failed[0]).splitlines()[0] if str(failed[0]) else failed[0]!r}")
