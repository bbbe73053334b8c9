"""Where compiled kernels are kept. Loads no Numba."""

import contextlib
import hashlib
import os
import shutil
import time
from pathlib import Path

KEPT_DAYS = 30
"""For how long folders of other versions of the kernels are kept after their last use."""


SOURCES = {
    "kernels": ("kernels", "noise.py", "dense.py", "courts.py", "pong.py"),
    "console": ("console", "kernels/compile", "courts.py", "pong.py"),
}
"""The packages with compiled code, and the files and folders that are compiled into it."""


def remove_old_folders() -> None:
    """Remove the folders of other versions of the compiled code that nobody has used for `KEPT_DAYS`."""
    mine = [Path(cache_folder(package)) for package in SOURCES]
    if "NUMBA_CACHE_DIR" in os.environ or not mine[0].parent.is_dir():
        return
    old = time.time() - 86400 * KEPT_DAYS
    for other in [folder for package in SOURCES for folder in mine[0].parent.glob(f"{package}-*")]:
        with contextlib.suppress(OSError):  # another process may do the same
            if other in mine or other.stat().st_mtime > old:
                continue  # few folders are so old that each file has to be looked at
            if max((file.stat().st_atime for file in other.rglob("*") if file.is_file()), default=0.0) < old:
                shutil.rmtree(other)


def cache_folder(package: str = "kernels") -> str:
    """Return the folder for compiled code of one of `SOURCES`, which need not exist yet.

    It is in `NUMBA_CACHE_DIR`, or in the user's cache. Not beside the source, which is Numba's own choice: pip removes
    only what it has installed, and a left-over folder ``fastpong`` among the packages hides an editable install that
    comes after it. And Numba compiles a function again when its own file has changed, but not when one in another file
    that is part of it has. So the name is a digest of them all.
    """
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    for place in (root / name for name in SOURCES[package]):
        for source in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(source.read_bytes())
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder:
        home = os.path.expanduser("~")  # "~" itself, in a container, for a user who has neither name nor HOME
        user = os.environ.get("XDG_CACHE_HOME") or os.path.join(home if os.path.isabs(home) else os.devnull, ".cache")
        folder = os.path.join(user, "fastpong")
    return os.path.join(folder, f"{package}-{digest.hexdigest()[:12]}")
