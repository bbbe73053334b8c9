"""Compiled kernels are kept where the user's caches are, survive two runs that fill the cache, and need none."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastpong
from fastpong.kernels.compile.cache import cache_folder, remove_old_folders

RATES = "from fastpong.kernels import optimiser; print(optimiser.__file__, optimiser.rates_of(0.5, 1).beta_1)"
"""Compiles one small kernel."""


def copied(tmp_path: Path) -> Path:
    """Return a copy of the package, which `PYTHONPATH` finds in `tmp_path`."""
    package = tmp_path / "fastpong"
    leave_out = shutil.ignore_patterns("__pycache__", ".mypy_cache", "agent.npz")
    shutil.copytree(Path(fastpong.__file__).parent, package, ignore=leave_out)
    return package


def test_folders_of_other_versions_go_when_nobody_uses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mine = Path(cache_folder())
    folders = [mine, mine.parent / "kernels-old", mine.parent / "kernels-used", mine.parent / "other"]
    for folder in folders:
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "kernel.nbi").write_bytes(b"")
        for path in (folder / "sub" / "kernel.nbi", folder / "sub", folder):
            os.utime(path, (0, 0))
    os.utime(folders[2] / "sub" / "kernel.nbi")
    remove_old_folders()
    assert [folder.exists() for folder in folders] == [True, False, True, True]


def test_a_cache_folder_that_the_user_names_notices_changed_code_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    names = [Path(cache_folder(package)).name for package in ("kernels", "console")]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert [Path(cache_folder(package)) for package in ("kernels", "console")] == [tmp_path / name for name in names]


def test_two_processes_may_fill_the_cache_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", RATES]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(240) for process in both] == [0, 0]
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb?")}
    assert {file.suffix for file in files} == {".nbi", ".nbc"}
    loaded = f"{RATES}; import sys; sys.exit('numba.np.linalg' in sys.modules)"  # what Numba would compile with
    subprocess.run([sys.executable, "-c", loaded], env=environment, check=True)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb?")} == files  # nothing is compiled again


def test_a_read_only_install_without_a_home_compiles_at_every_start(tmp_path: Path) -> None:
    package = copied(tmp_path)
    (package / "kernels" / "__pycache__").touch()  # where a folder would have to be: nothing can be kept here
    (package / "kernels" / "compile" / "__pycache__").touch()
    environment = {**os.environ, "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", RATES]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == [str(package / "kernels" / "optimiser.py"), "0.9"], done.stderr
    assert not list(tmp_path.rglob("*.nb?"))


def test_a_user_without_a_home_gets_no_folder_where_he_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container the number of a user may have no name; then nothing says where his home is."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # raises KeyError, as the system's does
    assert os.path.isabs(cache_folder())
    with pytest.raises(OSError):
        os.makedirs(cache_folder(), exist_ok=True)


def test_the_cache_is_the_users_and_leaves_nothing_beside_the_source(tmp_path: Path) -> None:
    # pip would not remove it, and a left-over folder hides the editable install that comes next.
    package = copied(tmp_path)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    script = f"{RATES}; from fastpong.kernels.compile.cache import cache_folder; print(cache_folder())"

    def folder() -> Path:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return Path(done.stdout.splitlines()[-1])

    first = folder()
    assert first.is_relative_to(tmp_path / "cache") and list(first.rglob("*rates_of*.nbc"))
    assert not list(package.rglob("*.nb?"))
    folders = {first}
    # The hash of noise.py is compiled into the kernels, and those of one file into those of another.
    for changed in ("noise.py", "kernels/structs.py", "kernels/tiles.py"):
        with (package / changed).open("a") as file:
            file.write("# changed\n")
        folders.add(folder())
    assert len(folders) == 4
    with (package / "policy.py").open("a") as file:
        file.write("# changed\n")
    assert folder() in folders


def test_numba_keeps_what_others_compile_where_it_did() -> None:
    script = (
        "from numba import config, njit; before = config.CACHE_DIR; import fastpong.kernels.epochs;"
        "assert config.CACHE_DIR == before"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
