"""Whatever happens to the files of compiled kernels, a kernel gives the right result."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from fastpong.kernels.compile import jit
from tests.support.faults import fault

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-20],
    "another file": lambda data: b"cos\nsystem\n(S'exit 1'\ntR.",
    **{f"bit {at}/8": lambda data, at=at: flipped(data, len(data) * at // 8) for at in range(8)},  # type: ignore[misc]
}


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def doubled(x: float) -> float:
    return 2 * x


def fresh() -> Any:
    """Return the kernel as a new process has it."""
    return jit.kernel(doubled)


def hits(kernel: Any) -> int:
    """Call the kernel, and return how often the cache had it."""
    assert kernel(4.0) == 8.0
    return sum(kernel.stats.cache_hits.values())


@fault("compiled kernels damaged, or not to be written", times=100)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_compiled_anew(
    damage: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(jit._FOLDERS, "kernels", str(tmp_path))
    assert hits(fresh()) == 0 and hits(fresh()) == 1
    (path,) = tmp_path.rglob(f"*.{ending}")
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert hits(fresh()) == 0 and hits(fresh()) == 1


@fault("compiled kernels damaged, or not to be written", times=100)
def test_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jit._FOLDERS, "kernels", str(tmp_path / "cache"))
    kernel = fresh()
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").touch()
    assert hits(kernel) == 0
