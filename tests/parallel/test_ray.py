"""On real Ray clusters: the bits of a run alone, whatever is lost; and what is told if a cluster cannot be used.

Ray is not part of the `test` extra: ``.ci/ray`` installs it and runs these tests.
"""

import contextlib
import functools
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fastpong.config import Config
from fastpong.errors import FastpongError, LostError
from fastpong.limits import Limits
from fastpong.runs.facts import read_metrics
from fastpong.runs.folder import RunFolder
from fastpong.show.progress import PlainProgress
from fastpong.training.loop import train
from tests.support import mpi
from tests.support.commands import SMALL, fastpong, one_line, settings, start, wait_for
from tests.support.faults import fault
from tests.support.trainings import run, small

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own

from fastpong.parallel.ray import Cluster, ClusterError, Placing  # noqa: E402
from fastpong.training.remote import RayActor  # noqa: E402

Arrays = Mapping[str, Any]
STEPS = {"reinit": 4000, "late": 4000, "karpathy": 8000}


class Disturbed(PlainProgress):
    """Progress that does something once, when the second line of metrics is shown."""

    def __init__(self, disturb: Callable[[], object]):
        super().__init__("")
        self._disturb, self._lines = disturb, 0

    def metrics(self, line: Mapping[str, Any]) -> None:
        self._lines += 1
        if self._lines == 2:
            self._disturb()


def state(folder: Path) -> Arrays:
    return RunFolder(folder).newest()[0]


def same(run: Arrays, other: Arrays) -> None:
    assert run.keys() == other.keys() and int(other["learner.updates"]) >= 2
    for name, array in run.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def train_on(
    cluster: Cluster, folder: Path, config: Config, steps: int, disturb: Callable[[], object] = lambda: None
) -> Arrays:
    RunFolder(folder).create(config, {})
    train(config, RunFolder(folder), Disturbed(disturb), cluster=cluster, limits=Limits(steps=steps))
    return state(folder)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Arrays]:
    """The ends of runs in one process."""
    folder = tmp_path_factory.mktemp("alone")
    for name, steps in STEPS.items():
        run(folder / name, small(name, log_interval=600), steps)
    return {name: state(folder / name) for name in STEPS}


@pytest.mark.parametrize("actors", [1, 2, 3])
def test_actors_change_no_bit_and_a_run_leaves_nothing_to_the_next(
    actors: int, alone: dict[str, Arrays], tmp_path: Path
) -> None:
    with Cluster(RayActor, Placing(actors=actors), 6) as cluster:
        for turn, name in enumerate(["late", "karpathy", "reinit", "late"] if actors == 2 else ["karpathy", "late"]):
            config = small(name, log_interval=600)
            same(alone[name], train_on(cluster, tmp_path / f"{turn}", config, STEPS[name]))


def pid_of(member: Any) -> int:
    return int(ray.get(member.__ray_call__.remote(lambda actor: os.getpid())))


@fault("a Ray actor dies", times=10)
@pytest.mark.parametrize("name", ["late", "karpathy"])
def test_a_killed_actor_is_replaced_and_changes_no_bit(name: str, alone: dict[str, Arrays], tmp_path: Path) -> None:
    with Cluster(RayActor, Placing(actors=2), 6) as cluster:
        kill = functools.partial(os.kill, pid_of(cluster.members[1]), signal.SIGKILL)
        same(alone[name], train_on(cluster, tmp_path / "run", small(name, log_interval=600), STEPS[name], kill))
    assert [line["replaced"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")][-1] == 1


@fault("a Ray actor dies", times=10)
def test_actors_that_die_again_and_again_end_the_run(tmp_path: Path) -> None:
    class Dying(RayActor):
        def play(self, *arguments: Any, **more: Any) -> Any:
            os._exit(1)

    with Cluster(Dying, Placing(actors=1), 6) as cluster, pytest.raises(LostError, match="was lost 3 times within 60"):
        train_on(cluster, tmp_path / "run", small("fast"), 4000)


def test_another_version_is_refused() -> None:
    class Other(RayActor):
        def versions(self) -> dict[str, str]:
            return {**super().versions(), "numba": "0.1"}

    with pytest.raises(ClusterError, match=r"actor 0 has numba 0\.1, this process \d"):
        Cluster(Other, Placing(actors=1), 6)


@pytest.fixture
def two_nodes() -> Iterator[Any]:
    """A cluster of two nodes on this machine, with two cores each."""
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    nodes.add_node(num_cpus=2)
    yield nodes
    nodes.shutdown()


@fault("a Ray machine is gone", times=10)
def test_a_removed_node_changes_no_bit(two_nodes: Any, alone: dict[str, Arrays], tmp_path: Path) -> None:
    with Cluster(RayActor, Placing(two_nodes.address, 2, placement="spread"), 6) as cluster:
        assert len({ray.get(m.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()))
                    for m in cluster.members}) == 2  # fmt: skip
        remove = functools.partial(two_nodes.remove_node, two_nodes.worker_nodes.copy().pop(), allow_graceful=False)
        same(alone["late"], train_on(cluster, tmp_path / "run", small("late", log_interval=600), STEPS["late"], remove))
    assert [line["replaced"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")][-1] >= 1


def test_too_many_actors_are_told(two_nodes: Any, tmp_path: Path) -> None:
    began = time.monotonic()
    options = ["--ray-address", two_nodes.address, "--actors", "3", "--actor-cpus", "2"]
    done = fastpong("train", *SMALL[:4], *options, "--run", "run", cwd=tmp_path)
    assert done.returncode == 1 and time.monotonic() - began < 30
    assert "3 actors with 2 cores each do not fit: the cluster has 4 cores" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nowhere"])
def test_a_cluster_that_is_not_there_is_told(address: str, tmp_path: Path) -> None:
    done = fastpong("train", *SMALL[:4], "--ray-address", address, "--run", "run", cwd=tmp_path)
    assert done.returncode in (1, 2) and address in one_line(done.stderr)
    assert not (tmp_path / "run").exists()


def test_a_listener_that_never_answers_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        done = fastpong("train", *SMALL[:4], "--ray-address", address, "--run", "run", cwd=tmp_path)
    assert done.returncode == 1 and address in one_line(done.stderr) and time.monotonic() - began < 30
    assert not (tmp_path / "run").exists()


@fault("Ray's driver ends", times=10)
def test_without_its_gcs_a_run_goes_on_and_ends(tmp_path: Path) -> None:
    """The end does not wait for Ray for ever."""
    small_run = [word for word in SMALL if word not in ("--workers", "2")]
    process = start("train", *small_run, *settings(log_interval=400), "--ray", "--run", "run", cwd=tmp_path)
    folder = RunFolder(tmp_path / "run")
    wait_for(folder.metrics.exists)
    family = psutil.Process(process.pid).children(recursive=True)
    next(child for child in family if child.name() == "gcs_server").kill()
    steps = read_metrics(folder.metrics)[-1]["steps"]
    wait_for(lambda: read_metrics(folder.metrics)[-1]["steps"] > steps)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=90)
    assert process.returncode == 130 and "all is saved" in out
    for child in family:  # agents of Ray's own may look for their cluster a while longer
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_driver_is_the_end_of_all(end: signal.Signals, tmp_path: Path) -> None:
    small_run = [word for word in SMALL if word not in ("--workers", "2")]
    options = [*settings(log_interval=400, checkpoint_interval=400), "--ray", "--actors", "2", "--run", "run"]
    process = start("train", *small_run, *options, cwd=tmp_path)
    folder = RunFolder(tmp_path / "run")
    wait_for(lambda: len(folder.checkpoints()) == 2)
    family = psutil.Process(process.pid).children(recursive=True)
    actors = [child for child in family if "RayActor" in " ".join(child.cmdline())]
    assert len(actors) == 2
    process.send_signal(end)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if end == signal.SIGINT else -9) and "Traceback" not in err
    if end == signal.SIGKILL:  # agents of Ray's own may look for their cluster a while longer
        family = actors
    assert not [child for child in psutil.wait_procs(family, timeout=30)[1] if child.status() != "zombie"]
    if end == signal.SIGINT:
        assert folder.newest().facts.steps == read_metrics(folder.metrics)[-1]["steps"]


def test_a_run_goes_on_on_another_engine(tmp_path: Path) -> None:
    """Alone and then with Ray: the bits of a run alone. With ranks between them: sums are rounded otherwise."""
    config = small("late", log_interval=600)
    run(tmp_path / "whole", config, 6000)
    for name, middle in (("bits", False), ("ranks", True)):
        folder = tmp_path / name
        run(folder, config, 2400)
        if middle:
            done = mpi.run(2, "-m", "fastpong", "train", "--run", str(folder), "--resume", "--steps", "3600")
            assert done.returncode == 0, done.stderr
        options = ["--ray", "--actors", "2", "--steps", "6000"]
        done = fastpong("train", "--run", name, "--resume", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    same(state(tmp_path / "whole"), state(tmp_path / "bits"))
    whole, ranks = (state(tmp_path / name) for name in ("whole", "ranks"))
    assert int(whole["learner.updates"]) == int(ranks["learner.updates"])


def test_ray_and_other_engines_exclude_each_other(tmp_path: Path) -> None:
    for options in (["--ray", "--workers", "2"], ["--actors", "2"], ["--ray", "--actors", "9"]):
        done = fastpong("train", "--envs", "8", *options, "--run", "run", cwd=tmp_path)
        assert done.returncode == 2 and "actors" in one_line(done.stderr)
    assert issubclass(ClusterError, FastpongError) and not (tmp_path / "run").exists()
