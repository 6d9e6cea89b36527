"""Typefaces for drawn receipts.

No font file is shipped with this package. Two faces come with libraries that it needs anyway: Rubik
(Open Font License) inside OpenCV 5, which has umlauts, the sharp s, the euro sign and every weight;
and Aileron (CC0) inside Pillow, which has none of these, just like the tills that print "Getraenke".
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from nightshift.documents.pixels import Pixels

_ASCII = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "€": "EUR", "–": "-"}
)


class Typeface(Protocol):
    """What a layout needs to know of a font: how wide a text is, and how to draw it."""

    def width(self, text: str, size: int) -> int:
        """Return the advance of `text` in pixels at `size` pixels of type."""
        ...

    def draw(self, paper: Pixels, text: str, *, at: tuple[int, int], size: int, ink: int) -> None:
        """Draw `text` on grey `paper` in place; `at` is (x, baseline y), `ink` 0 (black) to 255."""
        ...


def plain_ascii(text: str) -> str:
    """Write a text without umlauts: "Grüße 5 €" becomes "Gruesse 5 EUR"."""
    return text.translate(_ASCII)


@dataclass(frozen=True, kw_only=True)
class Rubik:
    """A proportional sans serif, upright or italic, weight 300 (light) to 800 (bold)."""

    weight: int = 400
    italic: bool = False

    @cached_property
    def _face(self) -> cv2.FontFace:
        return cv2.FontFace("italic" if self.italic else "sans")

    def width(self, text: str, size: int) -> int:
        """Return the advance in pixels."""
        _, _, width, _ = cv2.getTextSize((1, 1), text, (0, 0), self._face, size, self.weight)
        return int(width)

    def draw(self, paper: Pixels, text: str, *, at: tuple[int, int], size: int, ink: int) -> None:
        """Draw in place, clipped at the paper's edge."""
        x, baseline = at
        top, bottom = max(0, baseline - 2 * size), min(paper.shape[0], baseline + size)
        strip = np.ascontiguousarray(paper[top:bottom])  # a short strip: the call copies what it is given
        _, drawn = cv2.putText(strip, text, (x, baseline - top), (ink,), self._face, size, self.weight)
        paper[top:bottom] = drawn


@dataclass(frozen=True, kw_only=True)
class FixedPitch:
    """A till's printer: every character in a cell of the same width.

    Attributes:
        face: Face that draws the single characters.
        pitch: Width of a cell as a part of the size; 0.6 is usual.
    """

    face: Rubik
    pitch: float = 0.6

    def width(self, text: str, size: int) -> int:
        """Return the advance in pixels: characters times the cell."""
        return round(len(text) * self.pitch * size)

    def draw(self, paper: Pixels, text: str, *, at: tuple[int, int], size: int, ink: int) -> None:
        """Draw in place, each character in the middle of its cell."""
        x, baseline = at
        cell = self.pitch * size
        for index, character in enumerate(text):
            if character != " ":
                shift = round(index * cell + (cell - self.face.width(character, size)) / 2)
                self.face.draw(paper, character, at=(x + shift, baseline), size=size, ink=ink)


@dataclass(frozen=True, kw_only=True)
class PlainAscii:
    """Aileron, for a till without umlauts: "Grüße" is printed as "Gruesse", "€" as "EUR"."""

    def width(self, text: str, size: int) -> int:
        """Return the advance in pixels of the text as it is printed."""
        return round(_aileron(size).getlength(plain_ascii(text)))

    def draw(self, paper: Pixels, text: str, *, at: tuple[int, int], size: int, ink: int) -> None:
        """Draw in place, clipped at the paper's edge."""
        image = Image.fromarray(paper)
        ImageDraw.Draw(image).text(at, plain_ascii(text), font=_aileron(size), fill=ink, anchor="ls")
        paper[:] = np.asarray(image)


def _aileron(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size=size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise TypeError("Pillow was built without FreeType; install a wheel that has it")
    return font
