"""Text lines as an OCR engine finds them, and the printed rows that they stand in."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

Point = tuple[float, float]

_ROW_OVERLAP = 0.5  # centres closer than this part of a line's height share a row
_WIDE = 3.0  # only boxes this many times wider than high tell the angle of the paper
_CELL_GAP = 1.6  # cells closer than this many heights belong to one phrase


@dataclass(frozen=True, kw_only=True)
class TextLine:
    """One piece of text that the detector saw as a unit.

    Attributes:
        text: What was read.
        box: Corners in image pixels: top left, top right, bottom right, bottom left.
        score: The recogniser's own certainty, 0 to 1.
    """

    text: str
    box: tuple[Point, Point, Point, Point]
    score: float

    @cached_property
    def centre(self) -> Point:
        """Mean of the corners."""
        return sum(x for x, _ in self.box) / 4, sum(y for _, y in self.box) / 4

    @cached_property
    def height(self) -> float:
        """Length of the left edge in pixels."""
        return math.dist(self.box[0], self.box[3])

    @cached_property
    def width(self) -> float:
        """Length of the top edge in pixels."""
        return math.dist(self.box[0], self.box[1])

    @cached_property
    def slope(self) -> float:
        """Angle of the top edge in radians, positive when it falls to the right."""
        (left, top), (right, bottom) = self.box[0], self.box[1]
        return math.atan2(bottom - top, right - left)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Lines at one height of the paper, left to right: one printed row."""

    cells: tuple[TextLine, ...]

    @cached_property
    def text(self) -> str:
        """The whole row; cells are two spaces apart."""
        return "  ".join(cell.text for cell in self.cells)

    @cached_property
    def height(self) -> float:
        """Height of its tallest cell in pixels."""
        return max(cell.height for cell in self.cells)

    @cached_property
    def phrases(self) -> tuple[TextLine, ...]:
        """The row's cells, those close to each other and of like size joined into one."""
        phrases: list[TextLine] = []
        for cell in self.cells:
            if phrases and _adjoin(phrases[-1], cell):
                phrases[-1] = _joined(phrases[-1], cell)
            else:
                phrases.append(cell)
        return tuple(phrases)


def rows_of(lines: Sequence[TextLine]) -> tuple[Row, ...]:
    """Group text lines into printed rows, top to bottom, on straight and on tilted paper.

    The paper's angle is the median slope of the wide lines; heights are compared after turning by it.
    """
    angle = _paper_angle(lines)
    along = [(_turned(line.centre, -angle), line) for line in lines]
    groups: list[list[tuple[Point, TextLine]]] = []
    for place, line in sorted(along, key=lambda entry: entry[0][1]):
        if groups and _same_row(groups[-1], place[1], line.height):
            groups[-1].append((place, line))
        else:
            groups.append([(place, line)])
    return tuple(Row(cells=tuple(line for _, line in sorted(group, key=lambda e: e[0][0]))) for group in groups)


def median_height(lines: Iterable[TextLine]) -> float:
    """Return the height in pixels of a middling line; 1.0 where there is none."""
    heights = sorted(line.height for line in lines)
    return heights[len(heights) // 2] if heights else 1.0


def _paper_angle(lines: Sequence[TextLine]) -> float:
    """Return the slope at the middle of the total width of all wide lines: long ones say more."""
    wide = sorted((line.slope, line.width) for line in lines if line.width > _WIDE * line.height)
    half, seen = sum(width for _, width in wide) / 2, 0.0
    for slope, width in wide:
        seen += width
        if seen >= half:
            return slope
    return 0.0


def _turned(point: Point, angle: float) -> Point:
    x, y = point
    return x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)


def _same_row(group: Sequence[tuple[Point, TextLine]], y: float, height: float) -> bool:
    middle = sum(place[1] for place, _ in group) / len(group)
    tallest = max(line.height for _, line in group)
    return abs(y - middle) < _ROW_OVERLAP * min(height, tallest)


def _adjoin(left: TextLine, right: TextLine) -> bool:
    gap = math.dist(left.box[1], right.box[0])
    smaller, larger = sorted((left.height, right.height))
    return gap < _CELL_GAP * larger and larger < 1.4 * smaller


def _joined(left: TextLine, right: TextLine) -> TextLine:
    return TextLine(
        text=f"{left.text} {right.text}",
        box=(left.box[0], right.box[1], right.box[2], left.box[3]),
        score=min(left.score, right.score),
    )


def below(rows: Sequence[Row], row: Row) -> Row | None:
    """Return the row right below, or None at the end of the paper."""
    return next((lower for upper, lower in pairwise(rows) if upper is row), None)
