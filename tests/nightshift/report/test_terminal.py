import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from nightshift.report.checks import Report, run_checks
from nightshift.report.night import Night
from nightshift.report.tables import tables
from nightshift.report.terminal import render_terminal


def printed(report: Report, *, width: int = 80, is_terminal: bool = False) -> str:
    out = io.StringIO()
    render_terminal(report, Console(file=out, width=width, force_terminal=is_terminal))
    return out.getvalue()


def test_the_verdict_comes_first(night: Night, report: Report) -> None:
    assert printed(report).startswith("All 5 checks hold, but not all work was done.")
    bad = printed(run_checks(replace(night, claims=[])))
    assert bad.startswith("Not a good night: 1 of 5 checks fail: Nothing lost.")


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_name_is_cut(report: Report, width: int) -> None:
    text = printed(report, width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text


@pytest.mark.parametrize("width", [30, 40, 50, 60, 70])
def test_a_narrow_terminal_gets_every_cell_whole_and_no_line_that_is_wider(report: Report, width: int) -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed(report, width=width, is_terminal=True))
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    lines = " ".join(text.split())
    for table in tables(report):
        numbers = [number for number, head in enumerate(table.heads) if head.startswith("#")]
        for row in table.rows:
            assert all(row[number] in lines for number in numbers), row


def test_without_a_terminal_there_are_no_colour_codes_and_the_words_are_the_same(report: Report) -> None:
    plain = printed(report)
    assert "\x1b" not in plain
    assert "\x1b" in printed(report, is_terminal=True)
    assert plain.count("✓ holds") == 5


def test_a_failing_check_shows_some_evidence_and_how_much_more_there_is(night: Night) -> None:
    text = printed(run_checks(replace(night, claims=[])), width=200)
    assert "✕ FAILS" in text
    assert night.demands[0].job in text
    assert f"and {len(night.demands) - 8} more" in text


def test_brackets_in_names_are_printed_as_they_are(night: Night) -> None:
    occurrences = [replace(one, entry="[bold]odd[/bold]") for one in night.occurrences]
    assert "[bold]odd[/bold]" in printed(run_checks(replace(night, occurrences=occurrences)))
