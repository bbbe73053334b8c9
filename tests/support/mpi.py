"""Real ranks under a real mpiexec."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

MPIEXEC = str(shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"))
"""``pip install mpich`` brings one."""


def python(ranks: int, *arguments: str) -> list[str]:
    """Command that starts Python in so many ranks."""
    return [MPIEXEC, "-n", str(ranks), sys.executable, *arguments]


def run(ranks: int, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in so many ranks, to its end."""
    return subprocess.run(python(ranks, *arguments), capture_output=True, text=True, timeout=240, **options)


def run_script(ranks: int, folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run a script of these lines in so many ranks."""
    script = folder / "script.py"
    script.write_text("\n".join(lines) + "\n")
    return run(ranks, str(script))
