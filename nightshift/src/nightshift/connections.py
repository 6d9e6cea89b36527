"""What a process of nightshift holds open: made when first needed, in the process (after a fork) that needs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import redis
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

from nightshift.banking.client import AggregatorClient
from nightshift.banking.pacing import CallPacer
from nightshift.filings.client import FilingClient
from nightshift.peers import RetryRule
from nightshift.settings import NightSettings
from nightshift.tokens import AGGREGATOR, GATEWAY, Credentials, TokenSource

if TYPE_CHECKING:
    from nightshift.documents.reading import ReceiptReader

Made = TypeVar("Made")
DATABASE_CONNECTIONS = 10
"""For any number of threads: a body holds one only while it reads or writes the books, never while it waits."""


@dataclass(kw_only=True)
class Connections:
    """Clients, the books and the reader of this process."""

    settings: NightSettings
    books_url: str
    pacer_url: str
    _made: dict[tuple[int, str], Any] = field(default_factory=dict, init=False)
    _making: RLock = field(default_factory=RLock, init=False)

    def _once(self, name: str, make: Callable[[], Made]) -> Made:
        key = (os.getpid(), name)
        with self._making:
            if key not in self._made:
                self._made[key] = make()
            return cast("Made", self._made[key])

    @property
    def books(self) -> Engine:
        """Return the books' engine."""
        url = self.books_url.replace("postgresql://", "postgresql+psycopg://", 1)
        return self._once("books", lambda: create_engine(url, pool_size=DATABASE_CONNECTIONS, max_overflow=0))

    def session(self) -> Session:
        """Open a session on the books; use it as a context manager and keep it short."""
        return Session(self.books)

    @property
    def aggregator(self) -> AggregatorClient:
        """Return the client of the bank aggregator, paced together with all other processes."""

        def make() -> AggregatorClient:
            pacer = CallPacer(
                redis.Redis.from_url(self.pacer_url),
                f"{self.settings.prefix}aggregator",
                calls_per_second=self.settings.calls_per_second,
            )
            return AggregatorClient(self.settings.world_url, self._tokens(AGGREGATOR), pacer=pacer, rule=self._patience)

        return self._once("aggregator", make)

    @property
    def gateway(self) -> FilingClient:
        """Return the client of the filing gateway."""

        def make() -> FilingClient:
            return FilingClient(self.settings.world_url, self._tokens(GATEWAY), rule=self._patience)

        return self._once("gateway", make)

    @property
    def _patience(self) -> RetryRule:
        return RetryRule(timeout=timedelta(seconds=self.settings.call_timeout_s))

    def _tokens(self, audience: str) -> TokenSource:
        return TokenSource(Credentials.read(self.settings.credentials), audience=audience)

    @property
    def reader(self) -> ReceiptReader:
        """Return this process's reader of receipts."""
        from nightshift.documents.reading import ReceiptReader  # late: its array library is loaded only where it reads

        return self._once("reader", ReceiptReader)
