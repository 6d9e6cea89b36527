"""Tables on terminals of any width."""

import io

import pytest
from rich.console import Console

from slackwater.cli.tables import print_table

HEADS = ("lane", "ready", "running", "oldest")
ROWS = [["transaction_postprocess", "123456", "64", "12.5 s"], ["[bold]till[/bold]", "0", "unknown", ""]]


def printed(width: int) -> str:
    out = io.StringIO()
    print_table(Console(file=out, width=width, force_terminal=True, color_system=None), HEADS, ROWS)
    return out.getvalue()


@pytest.mark.parametrize("width", [24, 40, 60, 80])
def test_no_cell_is_cut_and_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = printed(width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert all(cell in " ".join(text.split()) for row in ROWS for cell in row)


def test_where_there_is_room_there_is_a_row_each() -> None:
    assert len(printed(80).splitlines()) == 3


def test_where_there_is_none_each_cell_is_named() -> None:
    assert "  ready: 123456\n  running: 64\n  oldest: 12.5 s\n" in printed(40)
