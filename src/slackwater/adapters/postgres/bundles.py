"""Bundles in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Text, and_, case, cast, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from slackwater.adapters import kept_messages
from slackwater.adapters.postgres.database import Database
from slackwater.adapters.postgres.pipeline import Statement, arrays, chosen_of
from slackwater.adapters.postgres.pulse import quickly
from slackwater.adapters.postgres.run_rows import names
from slackwater.adapters.postgres.tables import bundles as table
from slackwater.core.bundle import Bundle, BundleState, Link, Member
from slackwater.ports.bundles import ClosedBundle

_COLUMNS = [*table.columns]
_OPEN = table.c.state == BundleState.OPEN.value
_WHOLE = ("members", "body", "callback", "noted_at", "start_by", "kept_until")
"""What is written anew once a bundle is whole."""
_AGE = (table.c.noted_at, table.c.id)


class PostgresBundles:
    """The bundle store; each act is one statement, but for closing, which is two."""

    def __init__(self, database: Database) -> None:
        self._database = database
        new = insert(table).from_select(_COLUMNS, chosen_of(_COLUMNS).where(quickly()))
        changed = {name: new.excluded[name] for name in _WHOLE}
        not_whole = and_(_OPEN, func.json_typeof(table.c.members) == "object")
        # Compiled once: each group and chord that is published pays for it.
        self._note = Statement.of(
            new.on_conflict_do_update(index_elements=["id"], set_=changed, where=not_whole), schema=database.schema
        )

    def note(self, bundles: Sequence[Bundle]) -> None:
        """Keep bundles as open; one that is kept already stays as it is, unless that is not whole yet.

        It does not wait for the disk: a server that loses its last half second leaves a bundle that nobody watches.
        """
        if not bundles:
            return
        rows = [_row(one) for one in {one.id: one for one in bundles}.values()]
        self._database.pipe(lambda pipeline: pipeline.send(self._note, **arrays(_COLUMNS, rows)), repeatable=True)

    def open(self) -> Sequence[str]:
        """Return the ids of the open ones, oldest first."""
        query = select(table.c.id).where(_OPEN).order_by(*_AGE)
        return self._database.run(lambda connection: connection.execute(query).scalars().all())

    def find(self, ids: Sequence[str]) -> Sequence[Bundle]:
        """Return those of the bundles that are open, oldest first."""
        texts = [cast(one, Text).label(one.name) if one.name in ("members", "body") else one for one in _COLUMNS]
        query = select(*texts).where(_OPEN, table.c.id == names(ids).any_()).order_by(*_AGE)
        rows = self._database.run(lambda connection: connection.execute(query).all()) if ids else []
        return [_read(row) for row in rows]

    def blame(self, bundle: str, reason: str) -> bool:
        """Record why an open one cannot complete; the first reason stays."""
        first = case((table.c.reason == "", kept_messages.legible(reason)), else_=table.c.reason)
        statement = update(table).where(table.c.id == bundle, _OPEN).values(reason=first)
        return self._database.run(lambda connection: connection.execute(statement).rowcount) > 0

    def close(self, ids: Sequence[str], *, at: datetime) -> None:
        """Close open ones: those without a blame are deleted."""
        if not ids:
            return
        ours = table.c.id == names(ids).any_()
        state = case((table.c.body.is_(None), BundleState.PARTIAL.value), else_=BundleState.FAILED.value)
        blamed = update(table).where(ours, _OPEN, table.c.reason != "").values(state=state, closed_at=at)
        complete = delete(table).where(ours, _OPEN, table.c.reason == "")
        self._database.run(lambda connection: connection.execute(blamed))
        self._database.run(lambda connection: connection.execute(complete))

    def closed(self, *, limit: int) -> Sequence[ClosedBundle]:
        """Return those that could not complete, the latest first."""
        columns = (table.c.id, table.c.state, table.c.reason, table.c.closed_at)
        query = select(*columns).where(~_OPEN).order_by(table.c.closed_at.desc(), table.c.id).limit(limit)
        rows = self._database.run(lambda connection: connection.execute(query).all())
        return [
            ClosedBundle(
                id=row.id, state=BundleState(row.state), reason=row.reason, closed_at=row.closed_at.astimezone(UTC)
            )
            for row in rows
        ]

    def prune(self, *, before: datetime) -> int:
        """Delete what was closed, or published, before an instant; return how many."""
        old = or_(table.c.closed_at < before, _OPEN & (table.c.noted_at < before))
        return self._database.run(lambda connection: connection.execute(delete(table).where(old)).rowcount)


def _row(one: Bundle) -> tuple[Any, ...]:
    values = {
        "id": one.id,
        "members": json.dumps(_plain_members(one)),
        "body": None if one.body is None else json.dumps(_plain(one.body)),
        "callback": one.callback,
        "noted_at": one.noted_at,
        "start_by": one.start_by,
        "kept_until": one.kept_until,
        "state": BundleState.OPEN.value,
        "reason": one.blame,
    }
    return tuple(values.get(column.name) for column in _COLUMNS)


def _read(row: Any) -> Bundle:
    known = json.loads(row.members)
    whole = isinstance(known, list)
    return Bundle(
        id=row.id,
        members=tuple(_member(plain) for plain in (known if whole else known["members"])),
        body=None if row.body is None else _member(json.loads(row.body)),
        callback=row.callback,
        noted_at=row.noted_at,
        start_by=row.start_by,
        kept_until=row.kept_until,
        blame=row.reason,
        whole=whole,
        publisher=None if whole else known["publisher"],
    )


def _plain_members(one: Bundle) -> list[Any] | dict[str, Any]:
    members = [_plain(member) for member in one.members]
    return members if one.whole else {"members": members, "publisher": one.publisher}


def _plain(member: Member) -> list[Any]:
    return [member.placed, [[link.job, link.task] for link in member.links]]


def _member(plain: list[Any]) -> Member:
    placed, links = plain
    return Member(links=tuple(Link(job, task) for job, task in links), placed=placed)
