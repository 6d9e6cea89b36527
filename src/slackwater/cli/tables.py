"""Tables on a terminal of any width: where one does not fit, a block a row, since a number that is cut tells a lie."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

_BETWEEN = 2


def print_table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their heads; a cell is never cut."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    if sum(widths) + _BETWEEN * (len(widths) - 1) > console.width:
        _print_blocks(console, heads, rows)
        return
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def _print_blocks(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        for number, (head, cell) in enumerate(zip(heads, row, strict=True)):
            if cell:
                console.print(Text(f"{'  ' if number else ''}{head}: {cell}"), soft_wrap=not console.is_terminal)
