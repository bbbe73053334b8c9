"""ale-py verifies the console before it is used."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong.console import cartridge
from fastpong.console.games import Games
from fastpong.envs import verify
from fastpong.envs.base import LocalEnvs
from fastpong.envs.console import Console
from fastpong.envs.vector_env import VectorEnv
from fastpong.envs.verify import EngineWarning, fault_of_console, usable
from fastpong.errors import UsageError


@pytest.fixture
def unverified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that will say that the console was verified: there is none yet."""
    monkeypatch.setattr(verify, "_verdict", lambda: tmp_path / "cache" / "verdict")
    return tmp_path / "cache" / "verdict"


def test_it_is_verified_once(unverified: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable("console") == "console" and unverified.exists()
    monkeypatch.setattr(verify, "fault_of_console", lambda: "asked again")
    assert usable("console") == "console"
    assert usable("ale") == "ale"


def test_where_nothing_can_be_kept_every_start_compares(unverified: Path) -> None:
    unverified.parent.touch()
    assert usable("console") == "console" and not unverified.exists()


def test_an_unknown_engine(unverified: Path) -> None:
    with pytest.raises(UsageError, match="console, ale"):
        usable("stella")


def one_pixel_wrong(games: Games, envs: range, *arguments: Any) -> None:
    step(games, envs, *arguments)
    if len(games._envs.screens):
        games._envs.screens["words"][0, 100, 3] ^= np.uint64(1)


def one_bit_wrong(games: Games, envs: range, *arguments: Any) -> None:
    step(games, envs, *arguments)
    if len(games._envs.courts):
        games._envs.courts[0, 100, 1] ^= np.uint64(1)


def one_byte_wrong(games: Games, envs: range, *arguments: Any) -> None:
    step(games, envs, *arguments)
    games._envs.states[0].ram[0x40] ^= 1


def no_step(games: Games, envs: range, *arguments: Any) -> None:
    raise RuntimeError("LLVM ERROR: out of registers")


step = Games.step


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        (one_pixel_wrong, "the console's screens differ from ale-py's after 4 frames"),
        (one_bit_wrong, "the console's courts differ"),
        (one_byte_wrong, "the console's RAM differ"),
        (no_step, "does not run here .*out of registers"),
    ],
)
def test_a_console_that_differs_is_not_used(
    instead: Any, words: str, unverified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ALE steps the envs, whoever has them, and a line says so; nothing is kept, so the next start asks again."""
    monkeypatch.setattr(Games, "step", instead)
    with pytest.warns(EngineWarning, match=words):
        local = LocalEnvs(engine="console")
    with pytest.warns(EngineWarning, match=words), VectorEnv(2, 1, engine="console") as envs:
        assert envs.engine == local.engine == "ale" and not unverified.exists()
        envs.reset()
        envs.send(0, np.zeros(1, np.uint8))


def test_another_cartridge(unverified: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rom = cartridge.read()
    rom[0x700] ^= 1
    monkeypatch.setattr(cartridge, "read", lambda: rom)
    with pytest.warns(EngineWarning, match="another dump of Pong"):
        assert usable("console") == "ale"


def test_without_the_compiler(unverified: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert "NUMBA_DISABLE_JIT" in fault_of_console()


def test_the_real_console_has_no_fault() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fault_of_console() == ""
    assert Console.name == "console"
