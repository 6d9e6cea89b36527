import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from nightshift.report.checks import Report, run_checks
from nightshift.report.night import Night
from nightshift.report.page import render_page

NASTY = "</script><script>alert(1)</script> & \"quotes\" 'too'"


class Reader(HTMLParser):
    """Collects the tags, the addresses and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def test_the_page_refers_to_nothing_elsewhere(report: Report) -> None:
    page = render_page(report)
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) == {"http://www.w3.org/2000/svg"}
    assert read(page).references == []
    assert not re.search(r"@import|url\(", page)


def test_the_page_has_a_title_headings_and_a_named_picture(report: Report) -> None:
    page = render_page(report)
    tags = read(page).tags
    assert tags.count("h1") == 1
    assert tags.count("h2") >= 8
    assert re.search(r"<svg[^>]* role=.img.[^>]*><title>|<svg[^>]*><title>The night of", page)
    assert '<html lang="en">' in page


def test_everything_that_comes_from_the_night_is_escaped(night: Night) -> None:
    clicks = [replace(click, tenant=NASTY) for click in night.clicks]
    occurrences = [replace(one, entry=NASTY, reason=NASTY) for one in night.occurrences]
    nasty = replace(night, clicks=clicks, occurrences=occurrences, runs=[], plan=NASTY, expired_reasons={NASTY: 1})
    page = render_page(run_checks(nasty))
    reader = read(page)
    assert reader.tags.count("script") == 2, "our own two"
    assert "<script>alert" not in page
    assert reader.text.count(NASTY) > len(night.clicks)


def test_a_failing_check_shows_its_evidence_and_how_much_more_there_is(night: Night) -> None:
    text = read(render_page(run_checks(replace(night, claims=[])))).text
    assert "Not a good night" in text
    assert night.demands[0].job in text
    assert f"and {len(night.demands) - 20} more" in text


def test_a_quiet_night_says_that_nothing_is_for_you(night: Night) -> None:
    nothing = replace(
        night, occurrences=(), due=(), readings=(), demands=(), claims=(), runs=(), clicks=(), calls=(),
        filings=(), own_filings=(), accuracy=None, expired_reasons={}, processes=(),
    )  # fmt: skip
    text = read(render_page(run_checks(nothing))).text
    assert "For you: nothing" in text
    assert "Nobody submitted anything." in text


def test_the_moments_tell_what_was_read_and_null_where_nothing_was(night: Night) -> None:
    page = render_page(run_checks(night))
    told = json.loads(re.findall(r'id="moments">(.*?)</script>', page)[0])
    readings = told["lanes"]["transaction_sync"]
    unknown = [one for one in readings if one[2] is None]
    assert len(readings) == sum(one.lane == "transaction_sync" for one in night.readings)
    assert len(unknown) == sum(one.lane == "transaction_sync" and one.running is None for one in night.readings) > 0


def palette(block: str) -> dict[str, str]:
    found = dict(re.findall(r"--([\w-]+):(#[0-9a-f]+)", block))
    return {
        name: value if len(value) == 7 else "#" + "".join(digit * 2 for digit in value[1:])
        for name, value in found.items()
    }


def luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_texts_and_marks_stand_out_in_light_and_dark(theme: int) -> None:
    css = files("nightshift.report").joinpath("templates/picture.css").read_text(encoding="utf-8")
    colours = palette(re.findall(r":root[^{]*\{([^}]*)\}", css)[theme])
    for ground in ("paper", "card"):
        for ink in ("ink", "ink2", "press", "good"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    assert contrast(colours["press"], colours["press-bg"]) >= 4.5
    assert contrast(colours["ink2"], colours["press-bg"]) >= 4.5
    for mark in ("run", "area", "elastic", "done", "ink3"):
        assert contrast(colours[mark], colours["paper"]) >= 3, mark
