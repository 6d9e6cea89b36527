"""Names for what a worker process has in its hands on Valkey: delivered, and not acknowledged.

Kombu keeps such messages in one hash for all workers, so nobody can tell whose they are. Each worker process is given a
hash of its own, under names that follow from its node name and boot id; so another process can build them and put the
messages back when it is dead. The names are without kombu's global prefix, which kombu puts before them.

Owners are listed in one set of the broker. To look for their hashes instead (SCAN) would cost a walk over all keys of
the database, where results may lie by the hundred thousand, in every process and every two seconds. A worker enters
itself when it connects, before it takes its first message: so one that dies before its first presence is known too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from slackwater.core.liveness import Owner

REGISTRY = "slackwater.owners"
"""Name of the set of owners; its members are what `entry_of` writes."""

NEVER_S = 10 * 365 * 24 * 3600
"""A visibility timeout that no message reaches: kombu itself then restores no living worker's message."""


@dataclass(frozen=True, kw_only=True)
class UnackedKeys:
    """The names of one owner's keys.

    Attributes:
        messages: Hash of the messages by delivery tag.
        transit: Hash of the message, one at most, that has left its list and not reached that hash, by its list.
        index: Sorted set of the tags by the instant of delivery.
        mutex: Lock of kombu's own restoring.
    """

    messages: str
    transit: str
    index: str
    mutex: str


def keys_of(owner: Owner) -> UnackedKeys:
    """Return the names of an owner's keys."""
    name = f"{owner.worker}.{owner.boot.hex}"
    return UnackedKeys(
        messages=f"slackwater.unacked.{name}",
        transit=f"slackwater.transit.{name}",
        index=f"slackwater.unacked_index.{name}",
        mutex=f"slackwater.unacked_mutex.{name}",
    )


def client_name_of(owner: Owner) -> str:
    """Return what an owner's connections call themselves, for the broker's list of clients (no spaces)."""
    return f"slackwater.{''.join(owner.worker.split())}.{owner.boot.hex}"


def transport_options_of(owner: Owner) -> dict[str, Any]:
    """Return the transport options of kombu that make a process this owner."""
    keys = keys_of(owner)
    return {
        "unacked_key": keys.messages,
        "unacked_index_key": keys.index,
        "unacked_mutex_key": keys.mutex,
        "visibility_timeout": NEVER_S,
        "client_name": client_name_of(owner),
    }


def entry_of(owner: Owner, *, realm: str) -> str:
    """Return how an owner is written into the registry.

    Args:
        owner: Who.
        realm: Whose workers sweep for each other: an environment's prefix and the application's name.
    """
    return json.dumps([realm, owner.worker, owner.boot.hex])


def owner_in(entry: str) -> tuple[str, Owner] | None:
    """Read an entry of the registry: its realm and owner; None for what is no entry of ours."""
    try:
        realm, worker, boot = json.loads(entry)
        return str(realm), Owner(worker=str(worker), boot=UUID(boot))
    except (ValueError, TypeError, AttributeError):
        return None
