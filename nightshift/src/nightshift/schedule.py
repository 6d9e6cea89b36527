"""Nightshift's lanes and schedule."""

from __future__ import annotations

from datetime import datetime

from nightshift.settings import NightSettings, Plan
from slackwater import Entry, Lane, Schedule, crontab, host, hours, model, peer

ZONE = "Europe/Berlin"


def lanes(settings: NightSettings) -> list[Lane]:
    """Return the lanes, by what their work waits on."""
    aggregator = peer("aggregator", calls_per_second=settings.calls_per_second)
    return [
        # About 40 calls are under way at 12 a second and 3.2 s each; the rest of the slots wait for the pacer.
        Lane("transaction_sync", slots=settings.sync_slots, pool="threads", waits_on=[aggregator], protected=True),
        Lane("transaction_postprocess", slots=settings.readers, pool="prefork", waits_on=[host]),
        Lane(
            "agent_realtime",
            slots=8,
            pool="threads",
            waits_on=[model(), peer("filing_gateway")],
            protected=True,
            reserved=2,
        ),
    ]


def schedule(plan: Plan, *, until: datetime | None = None) -> Schedule:
    """Return the night's schedule. Every entry expires: now, or not at all; the next run takes over the backlog."""
    sweep = crontab(hour=4, minute=30) if plan is Plan.SHIFTED else crontab(hour=2, minute=10)
    return Schedule(
        zone=ZONE,
        until=until,
        entries={
            "update_all_transactions": Entry(crontab(hour=2, minute=0), expires=hours(4)),
            "update_accounts": Entry(crontab(hour=3, minute=15), expires=hours(3)),
            "categorize_uncategorized_transactions": Entry(sweep, expires=hours(3), elastic=True),
        },
    )
