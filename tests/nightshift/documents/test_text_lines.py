import math
from collections.abc import Callable

import pytest

from nightshift.documents.text_lines import Point, TextLine, below, median_height, rows_of

Paper = Callable[..., tuple[TextLine, ...]]


def turned(line: TextLine, degrees: float) -> TextLine:
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))

    def corner(point: Point) -> Point:
        x, y = point
        return x * cosine - y * sine, x * sine + y * cosine

    one, two, three, four = line.box
    box = corner(one), corner(two), corner(three), corner(four)
    return TextLine(text=line.text, box=box, score=line.score)


@pytest.mark.parametrize("degrees", [-4, -1, 0, 2, 4, 15])
def test_cells_at_one_height_make_a_row_however_the_paper_lies(paper: Paper, degrees: float) -> None:
    lines = paper("Bäckerei Müller", "Brötchen|1,20", "Brezel mit Butter|2,40", "Summe EUR|3,60")
    rows = rows_of([turned(line, degrees) for line in reversed(lines)])
    assert [row.text for row in rows] == [
        "Bäckerei Müller",
        "Brötchen  1,20",
        "Brezel mit Butter  2,40",
        "Summe EUR  3,60",
    ]


def test_cells_close_to_each_other_are_one_phrase_and_far_ones_are_not(paper: Paper) -> None:
    tank, owner = paper("TANKSTELLE"), paper("KÖHLER")
    left, right, top, bottom = 110.0, 170.0, 0.0, 20.0
    beside = ((left, top), (right, top), (right, bottom), (left, bottom))
    shifted = TextLine(text=owner[0].text, box=beside, score=0.9)
    assert [phrase.text for phrase in rows_of([*tank, shifted])[0].phrases] == ["TANKSTELLE KÖHLER"]
    assert [phrase.text for phrase in rows_of(paper("Brötchen|1,20"))[0].phrases] == ["Brötchen", "1,20"]


def test_no_lines_make_no_rows() -> None:
    assert rows_of([]) == ()
    assert median_height([]) == 1.0


def test_the_row_below_the_last_is_none(paper: Paper) -> None:
    upper, lower = rows_of(paper("Summe", "3,60"))
    assert below((upper, lower), upper) is lower
    assert below((upper, lower), lower) is None
