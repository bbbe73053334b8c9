"""Shared data of the tests: golden arrays, and real screens from the real emulator."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings

from fastpong.envs.emulators import Emulators

# The first example of a test may compile a kernel, and the machine may be busy: time is no criterion.
settings.register_profile("fastpong", deadline=None)
settings.load_profile("fastpong")

GOLDEN = Path(__file__).parent / "data" / "karpathy.npz"
"""The reference programs' algorithm in float64 on 48 consecutive real screens, with 24 hidden units."""


@pytest.fixture(scope="session")
def golden() -> dict[str, npt.NDArray[Any]]:
    with np.load(GOLDEN) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="session")
def real_screens() -> npt.NDArray[np.uint8]:
    """300 consecutive screens of a real game played at random: uint8 (300, 210, 160)."""
    emulators, rng = Emulators([0], seed=7), np.random.default_rng(7)
    screens = [emulators.reset()[0]["screens"][0].copy()]
    for _ in range(299):
        screens.append(emulators.step(rng.integers(0, 2, 1))[0]["screens"][0].copy())
    return np.stack(screens)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Subprocesses write plain text, however the tests were started."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    assert os.environ.get("FORCE_COLOR") is None
    yield
