from importlib.metadata import version

import pytest

from fastpong.commands import doctor
from fastpong.parallel.comm import Serial


def test_this_machine_is_fit() -> None:
    facts = doctor.examine(Serial())
    assert facts["problems"] == []
    assert facts["numba"] == version("numba") and facts["ROM"] == "Pong starts"
    assert facts["console"] == "as ale-py over 2,000 frames"
    text = "\n".join(doctor.table(facts))
    assert text.splitlines()[-1] == "no problem found"
    assert all(name in text for name in (*doctor.BASE, *doctor.EXTRAS))


def test_what_is_wrong_comes_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nowhere")
    monkeypatch.setattr(doctor, "BASE", ("no-such-package",))
    facts = doctor.examine(Serial())
    assert len(facts["problems"]) == 2
    assert any("NUMBA_CACHE_DIR" in line for line in doctor.table(facts))
