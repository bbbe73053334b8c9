"""Where compiled kernels are kept. Loads no Numba."""

import contextlib
import hashlib
import os
import shutil
import time
from pathlib import Path

KEPT_DAYS = 30
"""For how long folders of other versions of the kernels are kept after their last use."""


def remove_old_folders() -> None:
    """Remove the folders of other versions of the kernels that nobody has used for `KEPT_DAYS`."""
    folder = Path(cache_folder())
    if "NUMBA_CACHE_DIR" in os.environ or not folder.parent.is_dir():
        return
    for other in folder.parent.glob("kernels-*"):
        with contextlib.suppress(OSError):  # another process may do the same
            used = [other.stat().st_mtime, *(file.stat().st_atime for file in other.rglob("*") if file.is_file())]
            if other != folder and max(used) < time.time() - 86400 * KEPT_DAYS:
                shutil.rmtree(other)


def cache_folder() -> str:
    """Return the folder for compiled kernels, which need not exist yet: `NUMBA_CACHE_DIR`, or in the user's cache.

    Not beside the source, which is Numba's own choice: pip removes only what it has installed, and a left-over folder
    ``fastpong`` among the packages hides an editable install that comes after it. And Numba compiles a
    kernel again when its own file has changed, but not when a kernel in another file that is inlined into it
    has. So the name is a digest of them all.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return given
    kernels = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for source in [*sorted(kernels.rglob("*.py")), kernels.parent / "noise.py"]:
        digest.update(source.read_bytes())
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(user, "fastpong", f"kernels-{digest.hexdigest()[:12]}")
