"""Where compiled kernels are kept; without Numba, so that it can be asked at no cost."""

import hashlib
import os
from pathlib import Path


def cache_folder() -> str:
    """Return the folder for compiled kernels, which need not exist yet: `NUMBA_CACHE_DIR`, or in the user's cache.

    Not beside the source, which is Numba's own choice: pip does not remove what it has not installed, and a left-over
    folder ``fastpong`` among the packages hides an editable install that comes after it. And Numba compiles a
    kernel again when its own file has changed, but not when a kernel in another file that is inlined into it
    has. So the name tells the contents of them all.
    """
    told = os.environ.get("NUMBA_CACHE_DIR")
    if told:
        return told
    kernels = Path(__file__).parent
    digest = hashlib.sha256()
    for source in [*sorted(kernels.glob("*.py")), kernels.parent / "noise.py"]:
        digest.update(source.read_bytes())
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(user, "fastpong", f"kernels-{digest.hexdigest()[:12]}")
