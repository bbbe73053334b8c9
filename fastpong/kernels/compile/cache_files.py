"""Files of compiled kernels that can only make a start slower: Numba's own, each with a digest at its end.

Numba believes its files. After a power cut some are empty, for it replaces them without a sync; a flipped bit of
machine code ends the process. Here a file that is damaged, or cannot be read or written, counts as missing.
"""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

from fastpong.arrays import DIGEST, digest


class _Files(IndexDataCacheFile):  # type: ignore[misc]  # Numba has no types
    """The index and the data files of one kernel."""

    def load(self, key: Any) -> Any:
        """Return what was saved under a key, or None."""
        try:
            return super().load(key)
        except Exception:  # whatever an old, foreign or forged file makes of pickle
            return None

    def _load_index(self) -> Any:
        return super()._load_index() if self._intact(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        return super()._load_data(name) if self._intact(self._data_path(name)) else None

    @staticmethod
    def _intact(path: str) -> bool:
        try:
            data = Path(path).read_bytes()
        except OSError:
            return False
        return data[-DIGEST:] == digest(data[:-DIGEST])

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        with super()._open_for_write(filepath) as file:
            buffer = io.BytesIO()
            yield buffer
            file.write(buffer.getvalue() + digest(buffer.getvalue()))


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one kernel; raises `RuntimeError` where Numba finds no place for its files."""

    def __init__(self, function: Any):
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel, or None. Numba's own also loads what it would compile with, for half a second."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with contextlib.suppress(OSError):  # a full or read-only disk: the next start compiles again
            yield
