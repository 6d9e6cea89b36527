"""The morning report on a terminal: the verdict first; nothing is said by colour alone."""

from __future__ import annotations

from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from nightshift.report.check import Check
from nightshift.report.checks import Report
from nightshift.report.picture import heading
from nightshift.report.sentences import three_sentences, verdict
from nightshift.report.tables import Table, tables
from nightshift.report.wording import some_of

_MOST_EVIDENCE = 8
_INDENT = _BETWEEN = 2
_SHORT = 23
"""Columns up to this wide are kept on one line."""


def render_terminal(report: Report, console: Console) -> None:
    """Print the report; fits any width, and reads the same without colours."""
    night = report.night
    style = "bold green" if report.ok else "bold red"
    console.print(Text(verdict(report), style=style), soft_wrap=not console.is_terminal)
    console.print(
        Text(f"{heading(night)} · plan {night.plan} · seed {night.seed} · {night.minutes:g} min", style="dim")
    )
    console.print()
    for sentence in three_sentences(report):
        console.print(Text.assemble((f"{sentence.heading}. ", "bold"), sentence.text, " ", (sentence.detail, "dim")))
    for table in tables(report):
        console.print()
        _print_table(table, console)
    console.print()
    console.print(Text("Checks", style="bold"))
    for check in report.checks:
        _print_check(check, console)


def _print_table(table: Table, console: Console) -> None:
    console.print(Text.assemble((table.caption, "bold"), (f"  {table.source}" if table.source else "", "dim")))
    grid = Grid(box=None, padding=(0, _BETWEEN, 0, 0), pad_edge=False, header_style="dim", show_edge=False)
    for number, head in enumerate(table.heads):
        is_number = head.startswith("#")
        is_short = is_number or max(len(row[number]) for row in table.rows) <= _SHORT
        justify: Literal["right", "left"] = "right" if is_number else "left"
        grid.add_column(head.removeprefix("#"), justify=justify, no_wrap=is_short, overflow="fold")
    for row in table.rows:
        grid.add_row(*(escape(cell) for cell in row))
    if _narrowest(table) > console.width - _INDENT:
        _print_blocks(table, console)
        return
    console.print(Padding(grid, (0, 0, 0, _INDENT)))


def _narrowest(table: Table) -> int:
    """Return how many columns a table needs: all of each short cell, and room for a few words of each long one."""
    widths = [
        max(len(head.removeprefix("#")), *(len(row[number]) for row in table.rows))
        for number, head in enumerate(table.heads)
    ]
    folded = [
        width if head.startswith("#") else min(width, _SHORT) for width, head in zip(widths, table.heads, strict=True)
    ]
    return sum(folded) + _BETWEEN * (len(folded) - 1)


def _print_blocks(table: Table, console: Console) -> None:
    """Print a block a row where the table is too wide: a number that is cut is worse than none."""
    for first, *others in table.rows:
        console.print(Padding(Text(first, style="bold"), (0, 0, 0, _INDENT)))
        for head, cell in zip(table.heads[1:], others, strict=True):
            if cell:
                named = f"{head.removeprefix('#')}: {cell}" if head else cell
                console.print(Padding(Text(named), (0, 0, 0, 2 * _INDENT)))


def _print_check(check: Check, console: Console) -> None:
    sign = ("✓ holds", "green") if check.ok else ("✕ FAILS", "bold red")
    console.print(Padding(Text.assemble(sign, "  ", (check.name, "bold"), ": ", check.summary), (0, 0, 0, 2)))
    for line in some_of(check.evidence, _MOST_EVIDENCE):
        console.print(Padding(Text(line), (0, 0, 0, 11)))
    for line in some_of(check.notes, _MOST_EVIDENCE):
        console.print(Padding(Text(f"note: {line}", style="dim"), (0, 0, 0, 11)))
