"""Real recognition of drawn receipts: about one second an image, so there are few."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from nightshift.documents.accuracy import Facts, judge, rates_of
from nightshift.documents.reading import ReceiptReader, ReceiptReading
from nightshift.documents.scan import UnreadableDocument


def facts_of(reading: ReceiptReading) -> Facts:
    return Facts(vendor=reading.vendor, date=reading.date, total=reading.total)


def test_drawn_receipts_of_all_layouts_and_conditions_are_read(
    reader: ReceiptReader, drawn_receipts: dict[Path, Facts]
) -> None:
    verdicts = {path.stem: judge(facts_of(reader.read(path)), truth) for path, truth in drawn_receipts.items()}
    rates = rates_of(verdicts.values())
    assert rates.count == 12
    assert min(rates.vendor_ratio, rates.date_ratio, rates.total_ratio) >= 0.9, verdicts


@pytest.mark.parametrize("size", [(800, 800), (5000, 3), (3, 5000), (1, 1)])
def test_an_image_without_text_is_a_reading_without_facts(
    reader: ReceiptReader, tmp_path: Path, size: tuple[int, int]
) -> None:
    Image.new("L", size, 255).save(tmp_path / "blank.png")
    assert reader.read(tmp_path / "blank.png") == ReceiptReading(
        vendor=None, date=None, total=None, confidence=0.0, lines=()
    )


def test_reading_writes_nothing_into_the_home_of_its_user(tmp_path: Path) -> None:
    home, blank = tmp_path / "home", tmp_path / "blank.png"
    home.mkdir()
    Image.new("L", (80, 80), 255).save(blank)
    code = "import sys; from pathlib import Path; from nightshift.documents.reading import ReceiptReader\n"
    code += "ReceiptReader().read(Path(sys.argv[1]))"
    kept_silent = {"CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME"}
    env = {name: value for name, value in os.environ.items() if name not in kept_silent}
    subprocess.run([sys.executable, "-c", code, str(blank)], env={**env, "HOME": str(home)}, check=True, timeout=60)
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_what_is_no_image_is_unreadable_before_a_model_is_loaded(tmp_path: Path) -> None:
    fresh = ReceiptReader()
    (tmp_path / "a.jpg").write_bytes(b"no image")
    with pytest.raises(UnreadableDocument, match=r"a\.jpg cannot be read"):
        fresh.read(tmp_path / "a.jpg")
    assert "_engine" not in vars(fresh)
