"""A sheet to print on, from top to bottom: the few moves that every layout is made of."""

from dataclasses import dataclass, field

import numpy as np

from nightshift.documents.lettering import Typeface
from nightshift.documents.pixels import Pixels

_WHITE, _BLACK = 255, 0
_MAX_LENGTH = 4000  # a paper roll; cut where the print ends


@dataclass(kw_only=True)
class Paper:
    """A grey sheet with a cursor that moves down.

    Attributes:
        width: Pixels from edge to edge.
        margin: Blank pixels left and right.
        face: Typeface of running text.
        size: Type size of running text in pixels.
        ink: 0 (black) to 255.
        y: Top of the next line, in pixels.
    """

    width: int
    margin: int
    face: Typeface
    size: int
    ink: int = 25
    y: int = 30
    pixels: Pixels = field(init=False)

    def __post_init__(self) -> None:
        self.pixels = np.full((_MAX_LENGTH, self.width), _WHITE, np.uint8)

    @property
    def right(self) -> int:
        """X of the right margin."""
        return self.width - self.margin

    def line(
        self,
        *cells: tuple[int, str],
        size: int | None = None,
        face: Typeface | None = None,
        ink: int | None = None,
    ) -> None:
        """Print one line and move below it.

        Args:
            *cells: (x, text) pairs; a negative x is where the text *ends*.
            size: Type size in pixels, if not the paper's.
            face: Typeface, if not the paper's.
            ink: Grey of the print, if not the paper's.
        """
        size, face = size or self.size, face or self.face
        for x, text in cells:
            start = x if x >= 0 else -x - face.width(text, size)
            face.draw(
                self.pixels,
                text,
                at=(start, self.y + size),
                size=size,
                ink=self.ink if ink is None else ink,
            )
        self.y += round(size * 1.4)

    def left(self, text: str, *, size: int | None = None, face: Typeface | None = None) -> None:
        """Print one line from the left margin."""
        self.line((self.margin, text), size=size, face=face)

    def centre(
        self, text: str, *, size: int | None = None, face: Typeface | None = None, ink: int | None = None
    ) -> None:
        """Print one line in the middle."""
        chosen = face or self.face
        start = (self.width - chosen.width(text, size or self.size)) // 2
        self.line((max(0, start), text), size=size, face=face, ink=ink)

    def pair(self, text: str, value: str, *, size: int | None = None, face: Typeface | None = None) -> None:
        """Print a text at the left margin and a value that ends at the right one."""
        self.line((self.margin, text), (-self.right, value), size=size, face=face)

    def skip(self, pixels: int) -> None:
        """Leave room."""
        self.y += pixels

    def rule(self, *, dashed: bool = False) -> None:
        """Draw a horizontal line across the print."""
        row = self.pixels[self.y + 6 : self.y + 8, self.margin : self.right]
        row[:] = self.ink
        if dashed:
            row[:, np.arange(row.shape[1]) % 14 > 8] = _WHITE
        self.y += 16

    def band(self, *, height: int, grey: int = _BLACK) -> None:
        """Fill the next `height` pixels from edge to edge, without moving; print on it in white."""
        self.pixels[self.y : self.y + height] = grey

    def column_rule(self, x: int, *, top: int) -> None:
        """Draw a vertical line at `x` from `top` down to the last rule."""
        self.pixels[top : self.y - 8, x : x + 2] = self.ink

    def cut(self, *, length: int | None = None) -> Pixels:
        """Return the sheet, cut below the print or at a fixed `length`."""
        return self.pixels[: length or self.y + 40].copy()
