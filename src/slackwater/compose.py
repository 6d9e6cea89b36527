"""Where adapters are chosen; the only place."""

from __future__ import annotations

from urllib.parse import urlsplit

from slackwater.adapters.memory import MemoryStore
from slackwater.adapters.postgres import PostgresStore
from slackwater.errors import ConfigurationError
from slackwater.ports import Store

SCHEMA = "slackwater"


def open_store(address: str, *, prefix: str) -> Store:
    """Open the store at an address: `postgresql://...`, or `memory://` for tests.

    Args:
        address: URL.
        prefix: Keeps environments apart that share one database.

    Raises:
        ConfigurationError: No store of that kind.
    """
    scheme = urlsplit(address).scheme
    if scheme.partition("+")[0] in {"postgresql", "postgres"}:
        return PostgresStore(address, schema=f"{prefix}{SCHEMA}" if prefix else SCHEMA)
    if scheme == "memory":
        return MemoryStore()
    raise ConfigurationError(f"store: {scheme or address!r} is no kind of store; give postgresql://USER@HOST/DATABASE")
