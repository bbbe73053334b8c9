"""Env subprocesses that are killed, or hang, are replaced, and play on as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from fastpong.envs import patience, process
from fastpong.envs.vector_env import VectorEnv
from fastpong.errors import LostError
from fastpong.parallel import replaced
from fastpong.parallel.replaced import MOST, Losses
from fastpong.signals import Interrupts
from tests.support.envs import ENGINES, Seen, checksums, play_at_random
from tests.support.faults import fault

STEPS = 40
Fault = Callable[[VectorEnv, int], None]


def play(engine: str, fault: Fault | None = None, workers: int = 2, steps: int = STEPS) -> tuple[list[Seen], list[str]]:
    """Play with 5 envs, and let something happen before each step; return what was seen, and the notes."""
    notes: list[str] = []
    with VectorEnv(5, workers, seed=6, losses=Losses(notes.append), engine=engine) as envs:
        envs.reset()
        seen: list[Seen] = []
        for step in range(steps):
            if fault:
                fault(envs, step)
            seen += play_at_random(envs, 1, first=step)
        assert len(notes) == envs.losses.count
    return seen, notes


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


ON_CONSOLE = pytest.mark.parametrize("engine", ["console"], indirect=True)
"""ALE needs 0.1 s of a core for each emulator: what does not depend on the engine is tested without it."""


@pytest.fixture(scope="module")
def undisturbed(engine: str) -> list[Seen]:
    return play(engine)[0]


def strike(envs: VectorEnv, worker: int, number: signal.Signals) -> None:
    os.kill(envs.processes[worker].pid or 0, number)


@fault("an env subprocess dies", times=100)
@pytest.mark.parametrize(
    ("engine", "at"), [("console", 0), ("console", 6), ("console", 39), ("ale", 6)], indirect=["engine"]
)
def test_a_killed_subprocess_is_replaced(engine: str, undisturbed: list[Seen], at: int) -> None:
    def fault(envs: VectorEnv, step: int) -> None:
        if step == at:
            strike(envs, 1, signal.SIGKILL)

    seen, notes = play(engine, fault)
    assert seen == undisturbed
    assert len(notes) == 1 and "env subprocess 1 (pid" in notes[0] and "was killed by SIGKILL" in notes[0]


@fault("an env subprocess dies", times=100)
@pytest.mark.parametrize(("engine", "answered"), [("console", 0), ("console", 1), ("ale", 1)], indirect=["engine"])
def test_steps_in_flight_are_taken_again_from_their_rows(engine: str, undisturbed: list[Seen], answered: int) -> None:
    """Those of both groups, or one of two; what the lost subprocess leaves of their rows is anything."""
    with VectorEnv(5, 2, seed=6, engine=engine) as envs:
        envs.reset()
        play_at_random(envs, 7)
        actions = np.random.default_rng(7).integers(0, 2, 5).astype(np.uint8)
        for group, members in enumerate(envs.groups):
            if group == answered:
                strike(envs, 0, signal.SIGSTOP)  # it takes no step from here on
            envs.send(group, actions[members])
            if group < answered:
                envs.recv(group)
        strike(envs, 0, signal.SIGKILL)
        envs.processes[0].join()
        for members in envs.groups[answered:]:
            for name in ("rows", "screens", "rewards", "ended"):
                envs.arrays[name][members[members < 3]] = 77  # the first three are those of the first subprocess
        for group in range(answered, 2):
            envs.recv(group)
        assert envs.losses.count == 1
        assert checksums(envs) == undisturbed[7].images
        assert (envs.rewards.tolist(), envs.ended.tolist()) == (undisturbed[7].rewards, undisturbed[7].ended)
        assert play_at_random(envs, STEPS - 8, first=8) == undisturbed[8:]


@fault("an env subprocess hangs", times=10)
def test_one_that_hangs_is_replaced(engine: str, undisturbed: list[Seen], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "IDLE_SECONDS", 1)
    stopped: list[psutil.Process] = []

    def fault(envs: VectorEnv, step: int) -> None:
        if step == 8:
            stopped.append(psutil.Process(envs.processes[0].pid))
            strike(envs, 0, signal.SIGSTOP)

    seen, notes = play(engine, fault)
    assert seen == undisturbed
    assert len(notes) == 1 and notes[0].startswith("env subprocess 0 (pid") and "hangs" in notes[0]
    assert not stopped[0].is_running()


@fault("an env subprocess is slow", times=10)
def test_to_be_slow_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "IDLE_SECONDS", 1)
    with VectorEnv(24, 1, frame_skip=2000) as envs:
        envs.reset()
        play_at_random(envs, 1)  # takes more than three seconds
        assert envs.losses.count == 0


@fault("an env subprocess never ends a step", times=10)
def test_one_that_works_for_too_long_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BUSY_SECONDS", 0.5)
    monkeypatch.setattr(replaced, "MOST", 1)  # each works for a second
    notes: list[str] = []
    with VectorEnv(1, 1, frame_skip=10**9, losses=Losses(notes.append)) as envs:
        envs.reset()
        with pytest.raises(LostError, match="hangs"):
            play_at_random(envs, 1)
    assert len(notes) == 1 and all("hangs" in note for note in notes)


@fault("SIGTERM while an env subprocess hangs", times=10)
@ON_CONSOLE
def test_a_run_that_is_to_end_waits_for_none_that_hangs(
    engine: str, undisturbed: list[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is replaced at once, so that the step is done, and the run can save and end."""
    monkeypatch.setattr(patience, "IDLE_SECONDS", 10**6)

    def fault(envs: VectorEnv, step: int) -> None:
        if step == 8:
            strike(envs, 0, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGTERM)

    with Interrupts() as interrupts:
        seen, notes = play(engine, fault)
    assert interrupts.seen and seen == undisturbed and len(notes) == 1


@fault("the fork server hangs at the end", times=10)
def test_the_end_waits_for_no_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.2)
    envs = VectorEnv(2, 2)
    envs.reset()
    workers = [psutil.Process(process.pid) for process in envs.processes]
    server = workers[0].parent()
    server.suspend()
    envs.close(timeout=0.2)  # it can tell nobody that they have ended
    server.kill()
    assert not psutil.wait_procs(workers, timeout=20)[1]


SUSPENDED = """
from fastpong.envs import patience, process
from fastpong.envs.vector_env import VectorEnv
from tests.support.envs import play_at_random
patience.IDLE_SECONDS = 1
with VectorEnv(5, 2, seed=6) as envs:
    envs.reset()
    print(flush=True)
    play_at_random(envs, 1500)
    print(envs.losses.count)
"""


@fault("a suspended machine", times=10)
def test_to_be_suspended_is_no_hang() -> None:
    """All processes stand still for longer than one of them may."""
    command = [sys.executable, "-c", SUSPENDED]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(2.5)
    os.killpg(process.pid, signal.SIGCONT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and out.strip() == "0"


@fault("an env subprocess dies", times=100)
@ON_CONSOLE
def test_both_may_die_one_after_the_other(engine: str, undisturbed: list[Seen]) -> None:
    def fault(envs: VectorEnv, step: int) -> None:
        if step in (5, 30):
            strike(envs, step % 2, signal.SIGKILL)

    seen, notes = play(engine, fault)
    assert seen == undisturbed and len(notes) == 2


@fault("the fork server dies", times=100)
def test_the_fork_server_may_die_as_well(engine: str, undisturbed: list[Seen]) -> None:
    def fault(envs: VectorEnv, step: int) -> None:
        if step == 9:
            psutil.Process(envs.processes[0].pid).parent().kill()
            strike(envs, 0, signal.SIGKILL)

    seen, notes = play(engine, fault)
    assert seen == undisturbed and len(notes) in (1, 2)  # two, if one was asked of the server that was just dying


@fault("an env subprocess dies", times=100)
def test_state_goes_on_from_a_replaced_subprocess() -> None:
    """A snapshot after a loss, restored, and lost again before its first step."""
    with VectorEnv(5, 2, seed=6) as envs:
        envs.reset()
        play_at_random(envs, 20)
        strike(envs, 0, signal.SIGKILL)
        saved = envs.snapshot()
        expected = play_at_random(envs, 20, first=20)
        assert envs.losses.count == 1
    with VectorEnv(5, 2, seed=6) as envs:
        envs.restore(saved)
        strike(envs, 1, signal.SIGKILL)
        assert play_at_random(envs, 20, first=20) == expected
        assert envs.losses.count == 1


def test_many_losses_give_a_reason_to_end_and_then_end_it() -> None:
    with VectorEnv(2, 1) as envs:
        envs.reset()
        for loss in range(MOST + 1):
            assert bool(envs.losses.reason) == (loss == MOST)
            strike(envs, 0, signal.SIGKILL)
            if loss < MOST:
                play_at_random(envs, 2)
        with pytest.raises(
            LostError, match=f"killed by SIGKILL, and env subprocess 0 was lost {MOST} times within 60 s"
        ):
            play_at_random(envs, 1)


def test_nothing_is_left_in_shared_memory() -> None:
    """No file that we or a subprocess map has a name there; those of other runs may."""
    with VectorEnv(2, 1) as envs:
        envs.reset()
        strike(envs, 0, signal.SIGKILL)
        play_at_random(envs, 2)
        maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in ("self", envs.processes[0].pid))
        mapped = {int(line.split()[4]) for line in maps.splitlines() if " /dev/shm/" in line}
        named = [entry.path for entry in os.scandir("/dev/shm") if entry.inode() in mapped]
    assert not named
