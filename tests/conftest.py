"""Shared data of the tests, golden arrays and real screens; and ``--faults``, which repeats tests of faults."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # more of them wait for each other, and burn a core meanwhile

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings

from fastpong.console.step import step_in_fast_core
from fastpong.envs.base import LocalEnvs
from fastpong.kernels.compile.jit import is_cached
from fastpong.kernels.epochs import learn_minibatches
from tests.support.envs import ENGINES, step

# The first example of a test may compile a kernel, and the machine may be busy: time is no criterion.
# Plain Python is checked by fewer of them: it has the compiled code's numbers.
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
settings.register_profile("fastpong", deadline=None, max_examples=20 if PLAIN else 100)
settings.load_profile("fastpong")

COMPILE = (
    "from fastpong.config import make_config; from fastpong.training.warm_up import load_acting, load_learning\n"
    "for preset in ('fast', 'karpathy'):\n load_acting(make_config(preset)); load_learning(make_config(preset))",
    "from fastpong.envs.verify import fault_of_console; fault_of_console()\n"
    "from tests.console.compiled import compile_all; compile_all()",
)
ROOT = Path(__file__).parent.parent


def pytest_sessionstart(session: pytest.Session) -> None:
    """With an empty cache compile what many tests need, once: the first ones would all do it, at the same time."""
    if hasattr(session.config, "workerinput") or PLAIN:
        return
    if is_cached(learn_minibatches) and is_cached(step_in_fast_core):
        return
    for one in [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for code in COMPILE]:
        one.wait()


GOLDEN = Path(__file__).parent / "data" / "karpathy.npz"
"""The reference programs' algorithm in float64 on 48 consecutive real screens, with 24 hidden units."""


@pytest.fixture(scope="session")
def golden() -> dict[str, npt.NDArray[Any]]:
    with np.load(GOLDEN) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="session")
def real_screens() -> npt.NDArray[np.uint8]:
    """300 consecutive screens of a real game played at random: uint8 (300, 210, 160)."""
    envs, rng = LocalEnvs(seed=7, engine="ale"), np.random.default_rng(7)
    envs.reset()
    screens = [envs.screens[0].copy()]
    for _ in range(299):
        step(envs, rng.integers(0, 2, 1))
        screens.append(envs.screens[0].copy())
    return np.stack(screens)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    return str(request.param)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Subprocesses write plain text, however the tests were started."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    assert os.environ.get("FORCE_COLOR") is None
    yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", action="store_true", help="repeat each test of a fault as often as its mark says")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("fault")
    if mark and metafunc.config.getoption("faults"):
        metafunc.fixturenames.append("_time")
        metafunc.parametrize("_time", range(mark.args[1]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if mark := item.get_closest_marker("fault"):
        report.fault = mark.args[0]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """With ``--faults``, print how often each was tried, and failed: the table of docs/reliability.md."""
    if not config.getoption("faults"):
        return
    tried, failed = Counter[str](), Counter[str]()
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            if report.when == "call" and hasattr(report, "fault"):
                tried[report.fault] += 1
                failed[report.fault] += outcome == "failed"
    terminalreporter.write_line("\n| fault | times | failures |\n|---|---|---|")
    for name, count in sorted(tried.items()):
        terminalreporter.write_line(f"| {name} | {count} | {failed[name]} |")
