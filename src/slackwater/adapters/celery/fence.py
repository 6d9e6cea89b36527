"""Fences: what keeps a body that has lost its lease from committing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from slackwater.adapters.celery.bodies import current_body
from slackwater.adapters.transactions import refuse_autocommit
from slackwater.errors import ConfigurationError
from slackwater.ports import Store


@dataclass(frozen=True, kw_only=True)
class Fence:
    """The fence under which a body runs (fencing token of a lease).

    Attributes:
        lease: The lease's name.
        token: Higher with each taking of the lease.
        store: Gives the store.
    """

    lease: str
    token: int
    store: Callable[[], Store] = field(repr=False)

    def check(self, connection: Any) -> None:
        """Make sure, inside the body's own transaction, that the lease is still this body's.

        Call it last, just before the commit: the lease stays locked for share until then, and cannot be taken.

        Args:
            connection: A session or connection of SQLAlchemy's, or a connection or cursor of Django's or psycopg's, on
                the store's own database, in a transaction.

        Raises:
            StaleFence: It is not; the transaction must be rolled back.
            ConfigurationError: The connection is in no transaction, or to another database.
        """
        self.store().runs.check_fence(connection, lease=self.lease, fence=self.token)


def fence_here(store: Callable[[], Store]) -> Fence | None:
    """Return the fence of the body that runs in this thread; None outside of a body that has a lease."""
    body = current_body()
    if body is None or body.lease is None or body.fence is None:
        return None
    return Fence(lease=body.lease, token=body.fence, store=store)


@contextmanager
def fenced(connection: Any, store: Callable[[], Store]) -> Iterator[None]:
    """Check the fence at the end of a block, inside a transaction that is committed after it.

    Outside of a worker (a task called as a function, a test) there is no lease, and nothing is checked.

    Raises:
        ConfigurationError: The body that runs has neither lease nor key; or the connection is in no transaction, which
            is told before the block where a driver tells it, or to another database.
        StaleFence: The lease is another's by now.
    """
    body = current_body()
    fence = fence_here(store)
    if body is not None and fence is None:
        raise ConfigurationError("fenced() in a body without a lease; give its task lease= or key=")
    if fence is not None:
        refuse_autocommit(connection)
    yield
    if fence is not None:
        fence.check(connection)
