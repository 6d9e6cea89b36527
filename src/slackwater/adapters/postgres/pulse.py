"""Amnesty: a lease does not lapse while nobody could have renewed it, since the store, or everybody, was away.

One row, the pulse, says when anybody gave a sign of life last (`at`), and since when somebody always has (`up_since`).
A gap of half a time-to-live or more, or a restart of the server, is an outage; whoever comes first after it moves
`up_since` to now. A lease is live until its own end, and for one time-to-live after `up_since`.

All instants are the database's. Each statement reads its clock once, together with the pulse: were it read again after
the server was stopped in mid-statement, a lease could lapse that had no chance of renewal.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import (
    CTE,
    ColumnElement,
    Interval,
    Update,
    case,
    func,
    literal,
    literal_column,
    select,
    true,
    update,
)

from slackwater.adapters.postgres.tables import Instant, leases, pulse

_HALF: ColumnElement[float] = literal_column("0.5")
# Signs of life that come close together do not write the one row again and again.
_SELDOM: ColumnElement[float] = literal_column("0.1")


def clock() -> ColumnElement[datetime]:
    """Return the database's clock, which runs on within a statement and a transaction."""
    return func.clock_timestamp(type_=Instant)


def moment() -> CTE:
    """Return one row: `now`, and `up_since` as it is whether or not anybody has moved the pulse since the outage."""
    reading = select(clock().label("now")).subquery("clock")
    now = reading.c.now
    since = case((_out(now, pulse.c.lives_for), now), else_=pulse.c.up_since)
    return select(now, since.label("up_since")).join_from(pulse, reading, true()).cte("moment")


def live(at: CTE) -> ColumnElement[bool]:
    """Return the condition that a lease is live at a moment."""
    return at.c.now <= func.greatest(leases.c.expires_at, at.c.up_since + leases.c.lives_for)


def beat(lives_for: timedelta | None) -> Update:
    """Move the pulse, for use as a part of another statement; waits for nobody.

    Args:
        lives_for: Time-to-live of what is renewed; None to go by the latest, and to write after an outage alone.
    """
    now = clock()
    span: ColumnElement[timedelta] = pulse.c.lives_for if lives_for is None else literal(lives_for, Interval)
    due = _out(now, span)
    if lives_for is not None:
        due = due | (pulse.c.at < now - span.op("*")(_SELDOM)) | (pulse.c.lives_for != span)
    # Who finds the row locked leaves it: the other moves it at this very moment.
    mine = select(pulse.c.one).where(due).with_for_update(skip_locked=True).scalar_subquery()
    return (
        update(pulse)
        .where(pulse.c.one == mine)
        .values(at=now, up_since=case((_out(now, span), now), else_=pulse.c.up_since), lives_for=span)
    )


def quickly() -> ColumnElement[bool]:
    """Return a condition, always true, that lets the statement commit without waiting for the disk.

    For what may be lost with the server: a claim (the job is released twice) and a renewal (amnesty follows).
    """
    return _committing("off")


def durably() -> ColumnElement[bool]:
    """Return a condition, always true, that makes the statement's commit wait for the disk, whatever the default."""
    return _committing("on")


def _committing(how: str) -> ColumnElement[bool]:
    # Local to the statement's own transaction. A query of its own is run once, not for each row.
    return select(func.set_config("synchronous_commit", how, True)).scalar_subquery().is_not(None)


def _out(now: ColumnElement[datetime], span: ColumnElement[timedelta]) -> ColumnElement[bool]:
    started = func.pg_postmaster_start_time(type_=Instant)
    return pulse.c.at < func.greatest(now - span.op("*")(_HALF), started)
