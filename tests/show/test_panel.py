import io
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fastpong.config import make_config
from fastpong.limits import Limits
from fastpong.show.panel import Course, LiveProgress, make_progress
from fastpong.show.progress import KarpathyProgress, PlainProgress, Progress
from tests.support.runs import line
from tests.support.terminal import plain

WIDTHS = (40, 60, 80, 120)


@dataclass(frozen=True)
class Since(Limits):
    """Limits of a session that began so many seconds ago, however long the test takes."""

    gone: float = 0.0

    def seconds(self) -> float:
        return self.gone


def course(minutes: float | None = None, steps: int | None = None, gone: float = 0.0, past: Any = ()) -> Course:
    """Return the course to 18 of a session that began some seconds ago."""
    return Course(18.0, Since(steps, minutes, time.perf_counter() - gone, gone), past)


def drawn(panel: Course, width: int = 80, title: str = "the title", note: str = "", busy: str = "") -> list[str]:
    """Return the lines that a panel leaves in a terminal."""
    out = io.StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=width, height=24), title, panel)
    if busy:
        progress.busy(busy)
    if note:
        progress.note(note)
    progress.close()
    lines = plain(out.getvalue().encode())
    return lines[-next(i for i, text in enumerate(reversed(lines), 1) if text.startswith("╭")) :]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_panel_shows_numbers_curve_what_is_left_and_notes(width: int) -> None:
    panel = course(minutes=10, gone=200)
    for rate in (0.01, 0.5, 0.9):
        panel.add(line(round(1e6 * rate), games=120, score=12.13, point_rate=rate, phase="late", steps_per_s=20_111.0))
    lines = drawn(panel, width, note="a remark")
    assert {len(text) for text in lines} == {width}
    text = " ".join(lines)
    for part in (
        "the title",
        "score +12.1 of the last 100 games",
        "points won 90 %",
        "900,000 steps",
        "20,111/s",
        "late phase",
        "a remark",
        "even│",
        "6:40 left",
        "or a score of 18",
    ):
        assert part in text
    assert ("of 10:00" in text) == (width >= 80)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_dot_stands_before_the_first_game_is_over_and_nothing_jumps(width: int) -> None:
    panel = course(minutes=1)
    before = drawn(panel, width)
    panel.add(line(5056, games=0, score=None, point_rate=0.02))
    first = drawn(panel, width)
    assert "no score yet   points won 2 %" in first[1]
    later = course(minutes=1)
    later.add(line(1_999_999, games=120, score=-12.1, point_rate=0.02, steps_per_s=20_111.0, phase="early"))
    assert len(before) == len(first) == len(drawn(later, width))
    assert not any(0x2800 < ord(c) < 0x2900 for text in before for c in text)
    assert sum(0x2800 < ord(c) < 0x2900 for text in first for c in text) == 1


def test_the_score_of_an_agent_that_began_anew_is_of_no_number_of_games() -> None:
    panel = course()
    for reinits, told in ((0, "score -20.0 of the last 100 games"), (1, "score -20.0   points won")):
        panel.add(line(1000 * (reinits + 1), games=120, reinits=reinits))
        assert told in drawn(panel)[1]


def test_a_clock_runs_from_second_0_and_says_what_is_done() -> None:
    began = course(gone=3)
    assert "starting: 3 s" in drawn(began)[1]
    assert "compiling the kernels, once: 0 s" in drawn(began, busy="compiling the kernels, once")[1]
    assert "0:03 gone, or a score of 18" in drawn(began)[-1]


def test_the_axis_ends_with_the_limit_that_comes_first_at_the_present_speed() -> None:
    told = line(1_000_000, wall_s=50.0, steps_per_s=20_000.0, point_rate=0.5)
    for minutes, steps, end, used, left in (
        (2.0, None, 120, 50 / 120, "1:10 left of 2:00"),
        (2.0, 4_000_000, 120, 50 / 120, "1:10 left of 2:00"),
        (2.0, 2_000_000, 2_000_000, 0.5, "about 0:50 left of 2,000,000 steps"),
        (None, 2_000_000, 2_000_000, 0.5, "about 0:50 left of 2,000,000 steps"),
        (None, None, 50, 1.0, "0:50 gone"),
    ):
        one = course(minutes, steps, gone=50)
        one.add(told)
        view = one.view(brief=False)
        assert (view.end, view.used) == pytest.approx((end, used), rel=0.01)
        assert view.left == f"{left}, or a score of 18"
        assert view.points == [(1_000_000 if end == 2_000_000 else 50.0, 50.0)]
    for brief in (True, False):
        assert course(1.0, 10, gone=90).view(brief).left.startswith("0:00 left")
    assert "score" not in Course(22.0, Limits()).view(brief=False).left  # nobody reaches it


def test_a_resumed_run_shows_its_past_but_not_what_it_plays_anew() -> None:
    past = [line(1000, wall_s=100.0, point_rate=0.1), line(2000, wall_s=200.0, point_rate=0.2)]
    panel = course(minutes=5, past=past)
    assert panel.view(brief=False).points == [(100.0, 10.0), (200.0, 20.0)]
    assert panel.view(brief=False).end == pytest.approx(500, abs=1) and "5:00 left" in panel.view(brief=True).left
    panel.add(line(1500, wall_s=150.0, point_rate=0.3))
    assert panel.view(brief=False).points == [(100.0, 10.0), (150.0, 30.0)]
    assert panel.view(brief=False).end == pytest.approx(450, abs=1)


def test_a_line_of_few_steps_does_not_show_luck() -> None:
    panel = course()
    for steps, rate in ((20_000, 0.2), (40_000, 0.4), (60_000, 0.4), (62_000, 0.0)):
        panel.add(line(steps, point_rate=rate))
    assert [y for _, y in panel.view(brief=False).points] == pytest.approx([20, 40, 40, 40 * 20 / 22])
    assert panel.facts()[0][1] == "points won 36 %"


def test_names_in_the_panel_are_text() -> None:
    title, note = "run a[/b][red] \x1b]0;x\x07", "a [bold]remark\x9b\nof two"
    text = "\n".join(drawn(course(), 100, title, note))
    for part in ("run a[/b][red]", r"\x1b]0;x\x07", "a [bold]remark", r"\x9b\nof two"):
        assert part in text
    assert "\x1b]" not in text and "\x9b" not in text


def test_remarks_after_the_panel_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    progress = LiveProgress(Console(file=io.StringIO(), force_terminal=True), "title", course())
    progress.close()
    progress.note("go on: …")
    assert capsys.readouterr().err == "go on: …\n"


def test_a_display_is_live_only_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def kind(name: str | None, preset: str = "fast") -> type[Progress]:
        progress = make_progress(name, make_config(preset), Path("run"))
        progress.close()
        return type(progress)

    monkeypatch.setenv("FORCE_COLOR", "1")  # as in many a CI: stderr is a file all the same
    assert kind(None) is PlainProgress
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for term, expected in (("dumb", PlainProgress), ("xterm", LiveProgress)):
        monkeypatch.setenv("TERM", term)
        assert kind(None) is expected
    assert (kind("none"), kind("lines"), kind("lines", "karpathy")) == (Progress, PlainProgress, KarpathyProgress)


def test_a_live_panel_that_was_asked_for_obeys_a_terminal_that_cannot_redraw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = io.StringIO()
    progress = LiveProgress(Console(file=out, force_terminal=True, width=80), "title", course())
    progress.metrics(line(1000))
    progress.close()
    assert "\x1b" not in out.getvalue()
