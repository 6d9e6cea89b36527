"""Reads a receipt with optical character recognition, on one thread, from the models inside the wheel.

The sizes below were chosen on 60 drawn receipts and 18 real ones. Seconds are of one core, an image; then
the right vendors, dates and totals of the real ones in per cent (of the drawn ones all were right each time):

    image 960,  detector 544: 0.76 s, 67/83/94      image 1280, detector 736: 1.02 s, 83/94/100
    image 960,  detector 736: 1.00 s, 72/89/100     image 1280, detector 960: 1.15 s, 67/94/94
    image 1280, detector 544: 0.79 s, 67/83/94      image 1600, detector 960: 1.16 s, 67/94/94

So a larger image costs little, since lines are cut out of it and scaled to 48 pixels anyway; a smaller
detector misses faint lines; a larger one splits headings.

Lines recognised one by one, each padded to its own width, take 0.58 s an image; in batches of six, padded to
the usual 320 pixels, 0.97 s, with the same text. The classifier that turns single lines is left out: paper
that lies askew by 30 degrees is read without it, paper that is upside down is not read at all.
"""

import os
import threading
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nightshift.documents.extraction import extract
from nightshift.documents.pixels import Pixels
from nightshift.documents.scan import UnreadableDocument, load_scan
from nightshift.documents.text_lines import Point, TextLine

if TYPE_CHECKING:
    from rapidocr import RapidOCR

LONGEST_SIDE = 1280
"""Pixels; lines are cut out and recognised at this size."""
DETECTOR_SIDE = 736
"""Pixels; lines are looked for at this size, since the detector's cost grows with the area."""

_MODELS = {"Det.model_path": "PP-OCRv6_det_small.onnx", "Rec.model_path": "PP-OCRv6_rec_small.onnx"}
_PARAMETERS: dict[str, Any] = {
    "Global.log_level": "critical",  # an image without text is an answer, not a warning
    "Global.use_cls": False,
    "Global.max_side_len": 2 * LONGEST_SIDE,  # the image comes in its final size
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    "Det.limit_type": "max",
    "Det.limit_side_len": DETECTOR_SIDE,
    "Rec.rec_batch_num": 1,
    "Rec.rec_img_shape": [3, 48, 48],
}


@dataclass(frozen=True, kw_only=True)
class ReceiptReading:
    """What was read from one receipt; a fact that is not on the paper is None.

    Attributes:
        vendor: Name as printed.
        date: Day of issue.
        total: Sum to pay in EUR.
        confidence: 0 to 1; a missing fact counts as 0.
        lines: All text found, in the detector's order.
    """

    vendor: str | None
    date: date | None
    total: Decimal | None
    confidence: float
    lines: tuple[TextLine, ...]


class ReceiptReader:
    """Optical character recognition (OCR) of receipts; make one per process and keep it.

    The models are loaded by the first `read` (one second; the process then has 240 MB, and 350 MB after a few
    hundred images), so that a reader made before a fork costs nothing. Safe to share
    between threads; it reads one image at a time.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        # onnxruntime, when it is imported, writes an id of this machine under HOME, and sends what it loads to its
        # maker, unless this says no; `disable_telemetry_events()` comes too late for the id (measured with 1.32).
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

    def read(self, path: Path) -> ReceiptReading:
        """Read one image file; about one second of one core.

        Raises:
            UnreadableDocument: the file is no image, or is damaged, empty or far too large.
        """
        pixels = load_scan(path, longest_side=LONGEST_SIDE)
        with self._one_at_a_time:
            lines = self._lines(pixels, path)
        facts = extract(lines)
        return ReceiptReading(
            vendor=facts.vendor.value if facts.vendor else None,
            date=facts.date.value if facts.date else None,
            total=facts.total.value if facts.total else None,
            confidence=facts.confidence,
            lines=lines,
        )

    @cached_property
    def _engine(self) -> "RapidOCR":
        # Imported late: the drawing and the rules are used by processes that never load a model.
        import cv2
        import rapidocr

        cv2.setNumThreads(1)
        folder = Path(rapidocr.__file__).parent / "models"
        models = {key: str(folder / name) for key, name in _MODELS.items()}  # by path: never downloaded
        return rapidocr.RapidOCR(params=_PARAMETERS | models)

    def _lines(self, pixels: Pixels, path: Path) -> tuple[TextLine, ...]:
        import cv2
        from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

        three_channels = np.repeat(pixels[:, :, None], 3, axis=2)
        try:
            found = self._engine(three_channels)
        except (ONNXRuntimeError, cv2.error, ValueError) as failure:
            raise UnreadableDocument(path, "the text recognition refused the image") from failure
        return _text_lines(found)


def _text_lines(found: Any) -> tuple[TextLine, ...]:  # the engine answers with one of four types
    if not getattr(found, "txts", None):
        return ()
    return tuple(
        TextLine(text=text, score=float(score), box=_corners(box))
        for text, score, box in zip(found.txts, found.scores, found.boxes, strict=True)
    )


def _corners(box: NDArray[np.floating]) -> tuple[Point, Point, Point, Point]:
    top_left, top_right, bottom_right, bottom_left = ((float(x), float(y)) for x, y in box)
    return top_left, top_right, bottom_right, bottom_left
