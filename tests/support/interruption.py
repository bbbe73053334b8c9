"""Ctrl-C at any line of the envs' own modules."""

import sys
from typing import Any


class Interruption:
    """Raises `KeyboardInterrupt` at the n-th line that is run of the envs' own modules, as ctrl-C may."""

    def __init__(self, line: int):
        self.left, self._before = line, sys.gettrace()

    def __enter__(self) -> "Interruption":
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if "/fastpong/gym/" not in name and "/fastpong/envs/" not in name:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._trace
