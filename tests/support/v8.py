"""The pages' JavaScript in V8, without a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from py_mini_racer import MiniRacer, init_mini_racer

import fastpong
from fastpong.arrays import U8

PAGE = Path(fastpong.__file__).parent / "page"


class V8:
    """A context with some files of ``fastpong/page``."""

    def __init__(self, context: Any, *names: str):
        self.eval, self.call = context.eval, context.call
        for name in names:
            self.eval((PAGE / name).read_text())

    def bytes_of(self, code: str) -> U8:
        """Return a typed array of JavaScript's as uint8: not a copy, but the same memory."""
        return np.frombuffer(self.eval(code), np.uint8)


@contextmanager
def v8(*names: str) -> Iterator[V8]:
    """Open a context with some files of ``fastpong/page``."""
    init_mini_racer(flags=(), ignore_duplicate_init=True)  # by default it has one thread, and never optimises
    with MiniRacer() as context:
        yield V8(context, *names)
