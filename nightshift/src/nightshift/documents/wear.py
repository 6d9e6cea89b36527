"""What happens to paper between the till and the scanner: tilt, fading, noise, blur."""

import numpy as np
from PIL import Image, ImageFilter

from nightshift.documents.pixels import Pixels
from nightshift.documents.receipt import Condition

_MAX_TILT_DEGREES = 4.0
_TABLE_GREY = 168


def worn(sheet: Pixels, condition: Condition, *, seed: int) -> Image.Image:
    """Return the sheet as a scanner or a phone sees it, grey; the same seed gives the same pixels.

    Args:
        sheet: (height, width) print, black on white.
        condition: Which wear.
        seed: Chance for angle, noise and light.
    """
    chance = np.random.default_rng(seed)
    if condition is Condition.TILTED:
        return _tilted(sheet, chance)
    if condition is Condition.FADED:
        return _faded(sheet, chance)
    return Image.fromarray(sheet)


def _tilted(sheet: Pixels, chance: np.random.Generator) -> Image.Image:
    """Turn by one to four degrees, either way, on a grey table, in uneven light."""
    degrees = chance.uniform(1.0, _MAX_TILT_DEGREES) * chance.choice((-1, 1))
    turned = Image.fromarray(sheet).rotate(
        degrees, resample=Image.Resampling.BICUBIC, expand=True, fillcolor=_TABLE_GREY
    )
    return Image.fromarray(_grained(_lit(np.asarray(turned), chance), chance, sigma=3.0))


def _faded(sheet: Pixels, chance: np.random.Generator) -> Image.Image:
    """Thermal paper after a summer: low contrast, uneven, grainy, a little out of focus."""
    ink, paper = chance.uniform(110, 165), chance.uniform(212, 235)
    pale = (ink + sheet.astype(np.float32) / 255 * (paper - ink)).astype(np.uint8)
    grained = _grained(_lit(pale, chance), chance, sigma=chance.uniform(5, 10))
    return Image.fromarray(grained).filter(ImageFilter.GaussianBlur(chance.uniform(0.6, 1.2)))


def _lit(sheet: Pixels, chance: np.random.Generator) -> Pixels:
    """Darken towards one side, by at most 15 %."""
    down, across = chance.uniform(0, 0.08, size=2)
    rows = np.linspace(1, 1 - down, sheet.shape[0], dtype=np.float32)[:, None]
    columns = np.linspace(1, 1 - across, sheet.shape[1], dtype=np.float32)[None, :]
    return (sheet * rows * columns).astype(np.uint8)


def _grained(sheet: Pixels, chance: np.random.Generator, *, sigma: float) -> Pixels:
    noise = chance.standard_normal(sheet.shape, dtype=np.float32) * np.float32(sigma)
    return np.clip(sheet + noise, 0, 255).astype(np.uint8)
