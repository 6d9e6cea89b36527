"""Deliveries as the store's contract asks about them, and how they end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from slackwater.core.admission import Ask, KeyRule, LeaseRule, Run, WhenTaken
from slackwater.core.job import JobState
from slackwater.ports import Store
from slackwater.ports.delivery import Announcement, Begun, Finish

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BOOT, OTHER = UUID(int=1), UUID(int=2)


def ask(job: str, **given: Any) -> Ask:
    values: dict[str, Any] = {"job": job, "tries": 0, "task": "sync", "boot": BOOT, "redelivered": False}
    return Ask(**values | given)


def leased(name: str = "account:7", when_taken: WhenTaken = WhenTaken.WAIT, lives_for: timedelta = MINUTE) -> LeaseRule:
    return LeaseRule(name=name, when_taken=when_taken, lives_for=lives_for)


def keyed(
    job: str, *, name: str = "run:1", boot: UUID = BOOT, fresh_since: datetime | None = None, **given: Any
) -> Ask:
    rule = KeyRule(name=name, fresh_since=fresh_since)
    return ask(job, key=rule, lease=leased(f"key:{name}"), boot=boot, **given)


def begin(store: Store, one: Ask) -> Begun:
    (begun,) = store.runs.begin([one])
    return begun


def end(one: Ask, begun: Begun, state: JobState = JobState.DONE, **given: Any) -> Finish:
    values: dict[str, Any] = {
        "job": one.job, "tries": one.tries, "state": state, "ended_at": NOW, "fence": begun.fence,
        "key": None if one.key is None else one.key.name, "lease": None if one.lease is None else one.lease.name,
    }  # fmt: skip
    return Finish(**values | given)


def run(store: Store, job: str) -> Run | None:
    return store.runs.runs([job]).get(job)


def announce(store: Store, *jobs: str, at: datetime = NOW, key: KeyRule | None = None) -> list[str]:
    rule = key or KeyRule(name="run:1")
    announcements = [Announcement(job=job, task="sync", key=rule) for job in jobs]
    return list(store.runs.announce(announcements, at=at, stale_before=at - MINUTE))
