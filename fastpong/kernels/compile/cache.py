"""Where compiled kernels are kept. Loads no Numba."""

import hashlib
import os
from pathlib import Path


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
