"""Loads the file of a scanned or photographed document as grey pixels, or says in one sentence why not."""

import struct
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from nightshift.documents.pixels import Pixels

MAX_PIXELS = 80_000_000
"""A page of A4 at 600 dots an inch has 35 million; more than twice that is a mistake or an attack."""

_FORMATS = ("JPEG", "PNG", "TIFF", "WEBP", "BMP", "GIF")  # none that runs another program, as EPS would
# What Pillow's decoders made of 7,000 files with flipped and missing bytes, and the like of it.
_DECODER_ERRORS = (OSError, ValueError, SyntaxError, EOFError, TypeError, LookupError, OverflowError, struct.error)
_SMALLEST_SIDE = 64  # smaller images are padded with white, since the detector needs room


class UnreadableDocument(Exception):
    """A document cannot be read as an image.

    Attributes:
        path: The file.
        why: One clause: what is wrong with it.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path.name} cannot be read: {why}; upload it again as JPEG, PNG or TIFF")
        self.path = path
        self.why = why

    def __reduce__(self) -> tuple[type["UnreadableDocument"], tuple[Path, str]]:
        """Keep both arguments when it travels between processes."""
        return type(self), (self.path, self.why)


def load_scan(path: Path, *, longest_side: int) -> Pixels:
    """Load an image upright, in grey, no side longer than `longest_side` pixels.

    Returns:
        (height, width) grey, 0 black to 255 white, at least 64 pixels either way.

    Raises:
        UnreadableDocument: no such file, empty, not an image, cut off, or too many pixels to be a document.
    """
    try:
        if path.stat().st_size == 0:
            raise UnreadableDocument(path, "the file is empty")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about odd metadata, which nobody here looks at
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return _decoded(path, longest_side)
    except UnidentifiedImageError as unknown:
        raise UnreadableDocument(path, "it is no image in a known format") from unknown
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as bomb:
        raise UnreadableDocument(path, f"it has more than {MAX_PIXELS:,} pixels") from bomb
    except _DECODER_ERRORS as broken:
        # The system's own errors (no such file, a folder, no permission) have words; a decoder's have none.
        why = getattr(broken, "strerror", None) or "the image data is damaged or cut off"
        raise UnreadableDocument(path, why[0].lower() + why[1:]) from broken


def _decoded(path: Path, longest_side: int) -> Pixels:
    with Image.open(path, formats=_FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:  # before any pixel is decoded
            raise UnreadableDocument(path, f"it has more than {MAX_PIXELS:,} pixels")
        image.draft("L", (longest_side, longest_side))  # a large JPEG is decoded at a half or a quarter
        upright = _on_white(ImageOps.exif_transpose(image))
    upright.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    return _roomy(np.asarray(upright))


def _on_white(image: Image.Image) -> Image.Image:
    """Return it in grey; what is transparent is paper."""
    if image.mode.startswith("I;16"):
        return image.point(lambda value: value / 256, "L")
    if not image.has_transparency_data:
        return image.convert("L")
    layered = image.convert("LA")
    paper = Image.new("L", layered.size, 255)
    paper.paste(layered.getchannel("L"), mask=layered.getchannel("A"))
    return paper


def _roomy(pixels: Pixels) -> Pixels:
    height, width = pixels.shape
    missing = (max(0, _SMALLEST_SIDE - height), max(0, _SMALLEST_SIDE - width))
    if missing == (0, 0):
        return pixels
    return np.pad(pixels, ((0, missing[0]), (0, missing[1])), constant_values=255)
