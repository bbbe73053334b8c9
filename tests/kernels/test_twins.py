"""Kernels name their twins, and twins name their kernels."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastpong import kernels
from tests import naive

FOLDER = Path(kernels.__file__).parent


def named(text: str | None, before: str, names: str) -> list[str]:
    """The names, separated by commas, after some words of a docstring."""
    found = re.search(f"{before}: ({names}(?:,\\s+{names})*)", text or "")
    return re.split(r",\s+", found[1]) if found else []


def documented() -> Iterator[tuple[str, str]]:
    """Each function of the kernels as module.function, and its docstring."""
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.stem}.{node.name}", ast.get_docstring(node) or ""


def test_twins_that_kernels_name_exist_and_say_so() -> None:
    kernels_with_twins = 0
    for kernel, text in documented():
        twins = named(text, "Twin", r"naive\.\w+")
        assert len(twins) > 0 or "Twin" not in text, f"{kernel} names no twin"
        kernels_with_twins += bool(twins)
        for twin in twins:
            function: Any = getattr(naive, twin.removeprefix("naive."), None)
            assert callable(function), f"{kernel} names {twin}, which does not exist"
            assert kernel in named(function.__doc__, "Twin of", r"\w+\.\w+"), f"{twin} does not name {kernel}"
    assert kernels_with_twins > 20


def test_kernels_that_twins_name_exist_and_say_so() -> None:
    docs = dict(documented())
    for name, twin in vars(naive).items():
        for kernel in named(getattr(twin, "__doc__", None), "Twin of", r"\w+\.\w+"):
            module, function = kernel.split(".")
            assert callable(getattr(importlib.import_module(f"{kernels.__name__}.{module}"), function, None)), name
            if kernel != "sampling.hash64":  # it is compiled from `fastpong.noise`
                assert f"naive.{name}" in named(docs[kernel], "Twin", r"naive\.\w+"), f"{kernel} does not name {name}"
