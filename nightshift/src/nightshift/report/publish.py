"""Handing the morning report out: terminal, JSON, page."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console

from nightshift.errors import NightError
from nightshift.report.checks import Report, run_checks
from nightshift.report.machine import ReportUnwritable, write_json, write_whole
from nightshift.report.night import Night
from nightshift.report.page import render_page
from nightshift.report.picture import picture
from nightshift.report.terminal import render_terminal

PAGE, PICTURE = ".html", ".svg"


def ensure_writable(report: Path) -> None:
    """Make sure that the report can be written, before a night is spent on it.

    Args:
        report: JSON file asked for; page and picture go beside it.

    Raises:
        NightError: It cannot; says why.
    """
    beside = (report.with_suffix(PAGE), report.with_suffix(PICTURE))
    if report in beside:
        raise NightError(f"report {report}: page or picture would take its place; give a name that ends in .json")
    for path in (report, *beside):
        if path.is_dir():
            raise NightError(f"report {path}: is a folder; give the name of a file")
    try:
        with tempfile.TemporaryFile(dir=report.parent):
            pass
    except OSError as error:
        raise NightError(f"report {report}: {error.strerror}; give a file in a folder that you may write to") from error


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
    own = folder / "morning-report.json"
    try:
        _write(judged, report or own, console=console)
    except ReportUnwritable as error:
        if report is None:
            raise NightError(str(error)) from error
        _write_instead(judged, own, console=console, why=error)
    return judged.ok


def _write(judged: Report, json_file: Path, *, console: Console) -> None:
    page, image = json_file.with_suffix(PAGE), json_file.with_suffix(PICTURE)
    write_json(judged, json_file)
    write_whole(page, render_page(judged))
    write_whole(image, picture(judged))
    console.print(f"written: {json_file}, {page}, {image}", soft_wrap=True)


def _write_instead(judged: Report, own: Path, *, console: Console, why: ReportUnwritable) -> None:
    """Write a report into the night's folder, since it cannot be where it was to be; that is an error still."""
    try:
        _write(judged, own, console=console)
    except ReportUnwritable as error:
        raise NightError(f"{why}; and {error}") from error
    raise NightError(f"{why} (it is in {own} now)")
