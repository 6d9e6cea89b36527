"""Handing the morning report out: terminal, JSON, page."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from nightshift.errors import NightError
from nightshift.report.checks import run_checks
from nightshift.report.machine import ReportUnwritable, write_json, write_whole
from nightshift.report.night import Night
from nightshift.report.page import render_page
from nightshift.report.picture import picture
from nightshift.report.terminal import render_terminal


def publish(night: Night, *, console: Console, report: Path | None, folder: Path) -> bool:
    """Judge a night, print the report, and write it as JSON, as a page and as a picture.

    Args:
        night: All that is known of it.
        console: Where to print.
        report: JSON file asked for; page and picture go beside it. None writes all into the night's folder.
        folder: The night's folder.

    Returns:
        True if all checks hold.
    """
    judged = run_checks(night)
    render_terminal(judged, console)
    json_file = report or folder / "morning-report.json"
    page, image = json_file.with_suffix(".html"), json_file.with_suffix(".svg")
    try:
        write_json(judged, json_file)
        write_whole(page, render_page(judged))
        write_whole(image, picture(judged))
    except ReportUnwritable as error:
        raise NightError(str(error)) from error
    console.print(f"written: {json_file}, {page}, {image}", soft_wrap=True)
    return judged.ok
