from xml.etree import ElementTree

import pytest

from fastpong.show.curve import LABEL, Points, braille, sampled, svg

TICKS = {100.0: "100 %", 50.0: "even", 0.0: "0 %"}


def dots(lines: list[str]) -> set[tuple[int, int]]:
    """Return the dots of a picture, column and row, from the upper left."""
    bits = {(0, 0): 1, (0, 1): 2, (0, 2): 4, (0, 3): 64, (1, 0): 8, (1, 1): 16, (1, 2): 32, (1, 3): 128}
    return {
        (2 * column + x, 4 * row + y)
        for row, line in enumerate(lines)
        for column, c in enumerate(line[LABEL + 1 :])
        for (x, y), bit in bits.items()
        if 0x2800 < ord(c) < 0x2900 and (ord(c) - 0x2800) & bit
    }


def draw(*curves: Points, right: float = 100) -> list[str]:
    return braille(curves, 47, 8, right, 0, 100, 50, TICKS)


def test_a_curve_is_joined_from_its_begin_to_its_end() -> None:
    drawn = dots(draw([(25, 100), (50, 0), (75, 100)]))
    columns = sorted({x for x, _ in drawn})
    assert columns == [*range(20, 61)]  # a quarter of 80 columns of dots to three quarters
    rows = [{y for x, y in drawn if x == column} for column in columns]
    assert all(max(a) - min(b) >= -1 and max(b) - min(a) >= -1 for a, b in zip(rows, rows[1:], strict=False))
    assert min(rows[0]) <= 1 and max(max(one) for one in rows) >= 30 and min(rows[-1]) <= 1


def test_labels_and_the_dotted_line_stand_at_their_values() -> None:
    lines = draw()
    assert [len(line) for line in lines] == [47] * 8 and not dots(lines)
    assert lines[0].startswith(" 100 %│") and lines[7].startswith("   0 %│") and lines[4].startswith("  even│┈┈")
    assert dots(draw([(0, 1000), (100, 1000)])) == {(x, 0) for x in range(80)}  # what is outside stands at the edge


@pytest.mark.parametrize("x", [0, 0.01, 50, 100, 500])
def test_a_single_point_is_one_dot(x: float) -> None:
    assert len(dots(draw([(x, 3)]))) == 1
    assert len(sampled([(x, 3)], 100, 80)) == 1


def test_the_svg_has_the_same_axes_and_words_are_no_markup() -> None:
    drawn = ElementTree.fromstring(svg([(25, 0), (50, 100)], 100, 0, 100, 50, TICKS, 0.5, "<b> & 3:00 left"))
    space = "{http://www.w3.org/2000/svg}"
    assert [text.text for text in drawn.findall(f"{space}text")] == [*TICKS.values(), "<b> & 3:00 left"]
    curve = drawn.find(f"{space}polyline")
    assert curve is not None
    points = [tuple(map(float, one.split(","))) for one in curve.get("points", "").split()]
    assert points[0] == pytest.approx((48 + 145, 166), abs=1) and points[-1] == pytest.approx((48 + 290, 6), abs=1)
    _, axis, used = drawn.findall(f"{space}line")
    assert float(used.get("x2", 0)) - 48 == (float(axis.get("x2", 0)) - 48) / 2
    assert 'points=""' in svg([], 1, 0, 100, 50, TICKS, 0.0, "")
