"""Nightshift's lanes and schedule."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.exc import OperationalError

from nightshift.peers import OutcomeUnknown, PacerUnavailable, PeerUnavailable
from nightshift.settings import NightSettings, Plan
from slackwater import Backoff, Entry, Lane, Schedule, crontab, host, hours, minutes, model, peer, seconds
from slackwater.errors import BrokerUnavailable, StaleFence, StoreUnavailable

ZONE = "Europe/Berlin"


OURS_AWAY = (OperationalError, StoreUnavailable, BrokerUnavailable)
"""Our own servers do not answer: may pass in any lane. A fan-out's parent gives its jobs the same ids again."""
BANK_RETRY = Backoff(tries=4, base=seconds(4), cap=minutes(10))
"""Banks are away for minutes or hours, and nobody waits: few tries far apart, and the next fan-out does the rest."""
DOCUMENT_RETRY = Backoff(tries=2, base=seconds(5))
"""A page reads the same the second time: only a file or a server that was away is worth another try."""
PEOPLE_RETRY = Backoff(tries=6, base=seconds(1), cap=seconds(15))
"""A person waits: many tries close together."""


def lanes(settings: NightSettings) -> list[Lane]:
    """Return the lanes, by what their work waits on; each tries again what can pass by itself in its kind of work.

    A peer that refuses (`PeerRejected`, `ConsentEnded`) refuses again: never tried again. Who has lost its lease
    (`StaleFence`) has written nothing, and comes again to find out what the other one did.
    """
    aggregator = peer("aggregator", calls_per_second=settings.calls_per_second)
    return [
        # About 40 calls are under way at 12 a second and 3.2 s each; the rest of the slots wait for the pacer.
        Lane(
            "transaction_sync",
            slots=settings.sync_slots,
            pool="threads",
            waits_on=[aggregator],
            protected=True,
            backoff=BANK_RETRY,
            retry_on=[PeerUnavailable, PacerUnavailable, StaleFence, *OURS_AWAY],
        ),
        Lane(
            "transaction_postprocess",
            slots=settings.readers,
            pool="prefork",
            waits_on=[host],
            backoff=DOCUMENT_RETRY,
            retry_on=[OSError, *OURS_AWAY],
        ),
        Lane(
            "agent_realtime",
            slots=8,
            pool="threads",
            waits_on=[model(), peer("filing_gateway")],
            protected=True,
            reserved=2,
            backoff=PEOPLE_RETRY,
            retry_on=[PeerUnavailable, OutcomeUnknown, *OURS_AWAY],
        ),
    ]


def schedule(plan: Plan, *, until: datetime | None = None) -> Schedule:
    """Return the night's schedule. Every entry expires: now, or not at all; the next run takes over the backlog.

    The second run of the bank sync is the safety net: it syncs what the first one did not, nothing twice.
    """
    sweep = crontab(hour=4, minute=30) if plan is Plan.SHIFTED else crontab(hour=2, minute=10)
    return Schedule(
        zone=ZONE,
        until=until,
        entries={
            "update_all_transactions": Entry(crontab(hour=2, minute=0), expires=hours(4)),
            "update_all_transactions_again": Entry(
                crontab(hour=6, minute=30), expires=hours(1), task="update_all_transactions"
            ),
            "update_accounts": Entry(crontab(hour=3, minute=15), expires=hours(4)),
            "categorize_uncategorized_transactions": Entry(sweep, expires=hours(3), elastic=True),
        },
    )
