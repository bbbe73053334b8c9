"""Every command is tested in a hostile current directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import plant_foreign_code


@pytest.fixture(autouse=True)
def hostile_folder(tmp_path: Path) -> Iterator[None]:
    """Fill the folder in which commands run with files that no Python may run."""
    ran = plant_foreign_code(tmp_path)
    yield
    assert not ran.exists(), f"files of the current directory were run: {ran.read_text()}"
