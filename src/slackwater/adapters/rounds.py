"""Rounds: a batch in which one name comes twice, in parts in which none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def rounds(items: Sequence[T], *, by: Callable[[T], str]) -> list[list[T]]:
    """Return the items in as few parts as may be, each without a name twice; items of one name stay in their order."""
    parts: list[list[T]] = []
    seen: dict[str, int] = {}
    for item in items:
        turn = seen.get(by(item), 0)
        seen[by(item)] = turn + 1
        if turn == len(parts):
            parts.append([])
        parts[turn].append(item)
    return parts
