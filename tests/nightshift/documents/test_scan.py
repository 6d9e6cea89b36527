import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nightshift.documents.scan import UnreadableDocument, load_scan


def photo(path: Path, *, size: tuple[int, int] = (400, 200), mode: str = "L") -> Path:
    """A grey gradient that brightens to the right."""
    shades = np.tile(np.linspace(20, 230, size[0]).astype(np.uint8), (size[1], 1))
    Image.fromarray(shades).convert(mode).save(path)
    return path


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bad")
    jpeg, png = photo(folder / "whole.jpg").read_bytes(), photo(folder / "whole.png").read_bytes()
    Image.new("1", (10_000, 9_000)).save(folder / "huge.png")
    Image.new("1", (20_000, 20_000)).save(folder / "bomb.png")
    return {
        "empty": write(folder / "empty.jpg", b""),
        "no image": write(folder / "text.jpg", b"Sehr geehrte Damen und Herren"),
        "half a JPEG": write(folder / "half.jpg", jpeg[: len(jpeg) // 2]),
        "start of a JPEG": write(folder / "start.jpg", jpeg[:40]),
        "half a PNG": write(folder / "half.png", png[: len(png) // 2]),
        "a PDF": write(folder / "a.pdf", b"%PDF-1.7\n%%EOF"),
        "PostScript": write(folder / "a.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"),
        "too many pixels": folder / "huge.png",
        "a decompression bomb": folder / "bomb.png",
        "no file": folder / "missing.jpg",
        "a folder": folder,
    }


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("empty", "the file is empty"),
        ("no image", "no image in a known format"),
        ("half a JPEG", "damaged or cut off"),
        ("start of a JPEG", "damaged or cut off"),
        ("half a PNG", "damaged or cut off"),
        ("a PDF", "no image in a known format"),
        ("PostScript", "no image in a known format"),
        ("too many pixels", "more than 80,000,000 pixels"),
        ("a decompression bomb", "more than 80,000,000 pixels"),
        ("no file", "no such file"),
        ("a folder", "directory"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_that_says_why(bad_files: dict[str, Path], kind: str, why: str) -> None:
    path = bad_files[kind]
    with pytest.raises(UnreadableDocument, match=why) as caught:
        load_scan(path, longest_side=1280)
    assert str(caught.value).startswith(f"{path.name} cannot be read: ")
    assert "\n" not in str(caught.value)


def test_the_error_travels_between_processes_with_its_facts(tmp_path: Path) -> None:
    error = UnreadableDocument(tmp_path / "a.jpg", "the file is empty")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert (copy.path, copy.why, str(copy)) == (error.path, error.why, str(error))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "LA", "1"])
def test_every_colour_mode_becomes_grey(tmp_path: Path, mode: str) -> None:
    pixels = load_scan(photo(tmp_path / "a.png", mode=mode), longest_side=1280)
    assert pixels.shape == (200, 400)
    assert pixels.dtype == np.uint8
    assert pixels[:, :100].mean() < pixels[:, -100:].mean()


def test_what_is_transparent_is_white_paper(tmp_path: Path) -> None:
    Image.new("RGBA", (100, 100), (0, 0, 0, 0)).save(tmp_path / "a.png")
    assert load_scan(tmp_path / "a.png", longest_side=1280).min() == 255


def test_sixteen_bits_keep_their_shades(tmp_path: Path) -> None:
    Image.fromarray(np.full((100, 100), 30_000, np.uint16)).save(tmp_path / "a.png")
    assert load_scan(tmp_path / "a.png", longest_side=1280)[50, 50] == pytest.approx(117, abs=1)


def test_a_large_image_is_scaled_down_and_a_small_one_is_padded(tmp_path: Path) -> None:
    assert load_scan(photo(tmp_path / "a.jpg", size=(3000, 1500)), longest_side=1280).shape == (640, 1280)
    assert load_scan(photo(tmp_path / "b.jpg", size=(10, 100)), longest_side=1280).shape == (100, 64)


def test_a_photo_is_turned_upright_as_its_camera_says(tmp_path: Path) -> None:
    turned, orientation = Image.open(photo(tmp_path / "a.png")).rotate(90, expand=True), Image.Exif()
    orientation[0x0112] = 6
    turned.save(tmp_path / "a.jpg", exif=orientation)
    pixels = load_scan(tmp_path / "a.jpg", longest_side=1280)
    assert pixels.shape == (200, 400)
    assert pixels[:, :100].mean() < pixels[:, -100:].mean()
