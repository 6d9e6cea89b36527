"""Group commit: calls that come while one is under way are done together in the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass
class _Call(Generic[Item, Answer]):
    item: Item
    woken: threading.Event = field(default_factory=threading.Event)
    answers: list[Answer] = field(default_factory=list)
    error: BaseException | None = None
    leads: bool = False

    def result(self) -> Answer:
        if self.error is not None:
            raise self.error
        return self.answers[0]


class GroupCommit(Generic[Item, Answer]):
    """Combines calls of many threads into few of an act that takes many items.

    One caller at a time leads: it does the act for all that wait by then, and the first of those who came meanwhile
    leads next. A lone caller waits for nobody.

    Source: J. Gray, A. Reuter, "Transaction Processing", 1993, section 9.4.7 (group commit).
    """

    def __init__(self, act: Callable[[Sequence[Item]], Sequence[Answer]], *, most: int = 500) -> None:
        """Take the act, which answers each item in order, and how many items it is given at most."""
        self._act = act
        self._most = most
        self._lock = threading.Lock()
        self._waiting: list[_Call[Item, Answer]] = []
        self._busy = False

    def __call__(self, item: Item) -> Answer:
        """Do the act for one item; an error of the act reaches all whom it was done for."""
        mine: _Call[Item, Answer] = _Call(item)
        with self._lock:
            self._waiting.append(mine)
            mine.leads = not self._busy
            self._busy = True
        if not mine.leads:
            mine.woken.wait()
        if mine.leads:
            self._lead()
        return mine.result()

    def _lead(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        try:
            for call, answer in zip(batch, self._act([call.item for call in batch]), strict=True):
                call.answers.append(answer)
        except BaseException as error:  # noqa: BLE001  # raised again in each caller
            for call in batch:
                call.error = error
        with self._lock:
            heir = self._waiting[0] if self._waiting else None
            self._busy = heir is not None
        if heir is not None:
            heir.leads = True
            heir.woken.set()
        for call in batch:
            call.woken.set()
