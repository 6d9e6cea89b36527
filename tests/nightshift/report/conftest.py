"""A night made up by a small simulation: a bank window, a sweep, people all night; one job expired, one failed."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

import pytest

from nightshift.books.morning import MorningCounts
from nightshift.documents.accuracy import Rates
from nightshift.report.checks import Report, run_checks
from nightshift.report.night import (
    Claim,
    Claimant,
    Click,
    Demand,
    DemandSource,
    Night,
    OwnFiling,
    ProcessUse,
    Run,
)
from nightshift.world.books import Call, Filing
from nightshift.world.kinds import PathKind
from nightshift.world.limiter import RateLimit
from slackwater import JobState, Lane, LaneReading, Occurrence, OccurrenceState, Tempo, host, peer

BERLIN = ZoneInfo("Europe/Berlin")
RUN_ORIGIN = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
STARTS_AT = datetime(2026, 11, 30, 1, 30, tzinfo=BERLIN)
ENDS_AT = datetime(2026, 11, 30, 8, 0, tzinfo=BERLIN)
TEMPO = Tempo(run_origin=RUN_ORIGIN, calendar_origin=STARTS_AT, rate=97.5)
NAMES = UUID("5f0f3f7c-0a5b-4b7e-9b3c-1f5a1f0c7d11")
LANES = (
    Lane("transaction_sync", 40, waits_on=[peer("aggregator", calls_per_second=12)], protected=True),
    Lane("transaction_postprocess", 2, waits_on=[host]),
    Lane("agent_realtime", 8, waits_on=[peer("gateway")], protected=True),
)


def job_id(name: str) -> str:
    return str(uuid5(NAMES, name))


def at(hour: int, minute: int) -> datetime:
    return datetime(2026, 11, 30, hour, minute, tzinfo=BERLIN)


@dataclass
class Making:
    """A night in the making."""

    chance: random.Random
    demands: list[Demand] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    clicks: list[Click] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    filings: list[Filing] = field(default_factory=list)
    own: list[OwnFiling] = field(default_factory=list)
    occurrences: list[Occurrence] = field(default_factory=list)

    def call(self, kind: PathKind, subject: str, *, job: str, granted: datetime, latency_s: float) -> datetime:
        answered = granted + timedelta(seconds=latency_s)
        self.calls.append(
            Call(
                call_id=len(self.calls) + 1,
                received_at=granted,
                answered_at=answered,
                method="GET",
                kind=kind,
                subject=subject,
                query="",
                job_id=job,
                granted_at=granted,
                ask=0,
                latency_s=latency_s,
                fault=None,
                status=200,
                retry_after_s=None,
                replayed=False,
            )
        )
        return answered

    def demand(self, job: str, *, task: str, lane: str, at: datetime, parent: str | None = None) -> None:
        source = DemandSource.SCRIPT if lane == "agent_realtime" else DemandSource.PUBLISH
        elastic = lane == "transaction_postprocess"
        self.demands.append(Demand(job=job, task=task, lane=lane, source=source, at=at, elastic=elastic, parent=parent))

    def run(self, job: str, *, started: datetime, ended: datetime, start_by: datetime | None, outcome: str) -> None:
        asked = next(one for one in reversed(self.demands) if one.job == job)
        self.runs.append(
            Run(
                job=job,
                task=asked.task,
                lane=asked.lane,
                worker=f"{asked.lane}@night",
                published_at=asked.at,
                started_at=started,
                ended_at=ended,
                outcome=outcome,
                elastic=asked.elastic,
                start_by=start_by,
            )
        )
        self.claims.append(Claim(job=job, state=JobState(outcome), claimant=Claimant.RESULTS))


def bank_window(making: Making, occurrence: str, accounts: int, *, due: datetime, start_by: datetime) -> datetime:
    """Fan out over accounts: two calls each, 40 at once, 12 calls a second."""
    begin, limit = TEMPO.run_at(due) + timedelta(seconds=0.3), timedelta(seconds=1 / 12)
    free = [begin] * 40
    token = begin
    for number in range(accounts):
        job, account = job_id(f"{occurrence}/{number}"), f"account-{number}"
        started = heapq.heappop(free)
        making.demand(
            job, task="update_transactions_by_bank_account", lane="transaction_sync", at=begin, parent=occurrence
        )
        moment = started
        for kind in (PathKind.BALANCES, PathKind.TRANSACTIONS):
            granted = max(moment, token)
            token = granted + limit if kind is PathKind.BALANCES else token + limit
            latency_s = making.chance.lognormvariate(0.9163, 0.7)
            moment = making.call(kind, account, job=job, granted=granted, latency_s=latency_s)
        making.run(job, started=started, ended=moment, start_by=start_by, outcome="done")
        heapq.heappush(free, moment)
    return max(free)


def sweep(making: Making, occurrence: str, receipts: int, *, due: datetime, start_by: datetime) -> datetime:
    """Fan out over receipts: two readers; one receipt fails."""
    begin = TEMPO.run_at(due) + timedelta(seconds=0.2)
    free = [begin, begin]
    for number in range(receipts):
        job = job_id(f"{occurrence}/{number}")
        making.demand(
            job, task="extract_data_from_attachment", lane="transaction_postprocess", at=begin, parent=occurrence
        )
        started = heapq.heappop(free)
        ended = started + timedelta(seconds=making.chance.uniform(1.0, 2.4))
        making.run(job, started=started, ended=ended, start_by=start_by, outcome="failed" if number == 17 else "done")
        heapq.heappush(free, ended)
    return max(free)


def people(making: Making, count: int) -> None:
    """Let people submit all night."""
    for number in range(count):
        job, key = job_id(f"click/{number}"), f"run-{number}"
        clicked = RUN_ORIGIN + timedelta(seconds=making.chance.uniform(1, 236))
        making.demand(job, task="submit_approved_run", lane="agent_realtime", at=clicked)
        started = clicked + timedelta(seconds=min(0.4, making.chance.lognormvariate(-3.6, 0.7)))
        ended = started + timedelta(seconds=making.chance.lognormvariate(-0.5, 0.5))
        making.run(job, started=started, ended=ended, start_by=None, outcome="done")
        making.clicks.append(
            Click(job=job, run_id=number, tenant=f"Müller & Söhne {number % 40}", clicked_at=clicked, answered_at=ended)
        )
        filing = f"F-{number:05}"
        making.filings.append(
            Filing(filing_id=filing, idempotency_key=key, body="{}", received_at=ended, call_id=number, job_id=job)
        )
        making.own.append(OwnFiling(run_id=number, key=key, filing_id=filing))


def occurrence(making: Making, entry: str, due: datetime, *, start_by: datetime, lane: str) -> Occurrence:
    identity = UUID(job_id(f"{entry}/{due:%H%M}"))
    elastic = lane == "transaction_postprocess"
    published = TEMPO.run_at(due) + timedelta(seconds=0.05)
    made = Occurrence(
        id=identity,
        entry=entry,
        task=entry,
        lane=lane,
        elastic=elastic,
        due_at=due,
        start_by=start_by,
        published_at=published,
    )
    making.demand(str(identity), task=entry, lane=lane, at=published)
    return made


def end(making: Making, made: Occurrence, *, ended: datetime, jobs: int, failed: int = 0) -> None:
    started = (made.published_at or RUN_ORIGIN) + timedelta(seconds=0.05)
    making.run(
        str(made.id),
        started=started,
        ended=started + timedelta(seconds=0.2),
        start_by=made.start_by,
        outcome="done",
    )
    told = {JobState.DONE: jobs - failed, JobState.FAILED: failed}
    state = OccurrenceState.FAILED if failed else OccurrenceState.DONE
    reason = f"{failed} of {jobs} jobs failed" if failed else None
    making.occurrences.append(replace(made, state=state, reason=reason, started_at=started, ended_at=ended, jobs=told))


def readings(making: Making) -> Iterator[LaneReading]:
    """Count what ran and waited, every second; for nine seconds nothing of the banks' lane is known."""
    starts = {run.job: run for run in making.runs}
    for tick in range(241):
        now = RUN_ORIGIN + timedelta(seconds=tick)
        for lane in LANES:
            if lane.name == "transaction_sync" and 60 <= tick < 69:
                yield LaneReading(at=now, lane=lane.name)
                continue
            mine = [run for run in starts.values() if run.lane == lane.name]
            waiting = [run for run in mine if run.published_at and run.published_at <= now < run.started_at]
            oldest = min((run.published_at for run in waiting if run.published_at), default=None)
            yield LaneReading(
                at=now,
                lane=lane.name,
                ready=len(waiting),
                running=sum(run.started_at <= now < (run.ended_at or now) for run in mine),
                slots=lane.slots,
                workers=1,
                oldest_age=None if oldest is None else now - oldest,
            )


def made_night(seed: int = 7, *, accounts: int = 400, receipts: int = 60, clicks: int = 240) -> Night:
    making = Making(chance=random.Random(seed))
    banks = occurrence(making, "update_all_transactions", at(2, 0), start_by=at(4, 0), lane="transaction_sync")
    ended = bank_window(making, str(banks.id), accounts, due=at(2, 0), start_by=at(4, 0))
    end(making, banks, ended=ended, jobs=accounts)
    reading = occurrence(
        making, "categorize_uncategorized_transactions", at(4, 15), start_by=at(6, 15), lane="transaction_postprocess"
    )
    ended = sweep(making, str(reading.id), receipts, due=at(4, 15), start_by=at(6, 15))
    end(making, reading, ended=ended, failed=1, jobs=receipts)
    late = occurrence(making, "update_all_transactions", at(6, 45), start_by=at(7, 15), lane="transaction_sync")
    making.claims.append(Claim(job=str(late.id), state=JobState.EXPIRED, claimant=Claimant.ENDINGS, detail="late"))
    making.occurrences.append(
        replace(late, state=OccurrenceState.EXPIRED, reason="its parent job ended as expired", published_at=None)
    )
    people(making, clicks)
    return Night(
        plan="shifted",
        seed=seed,
        minutes=4,
        tempo=TEMPO,
        starts_at=STARTS_AT,
        ends_at=ENDS_AT,
        zone=BERLIN,
        lanes=LANES,
        occurrences=making.occurrences,
        due=[(one.entry, one.due_at) for one in making.occurrences],
        readings=tuple(readings(making)),
        demands=making.demands,
        claims=making.claims,
        runs=making.runs,
        clicks=making.clicks,
        calls=making.calls,
        filings=making.filings,
        own_filings=making.own,
        rate_limit=RateLimit(calls_per_second=12, burst=6),
        books=MorningCounts(
            account_count=accounts,
            synced_account_count=accounts,
            refreshed_account_count=accounts,
            consent_needed_count=0,
            new_transaction_count=1_893,
            read_attachment_count=receipts - 1,
            unreadable_attachment_count=1,
            unread_attachments_left_count=0,
            submitted_run_count=clicks,
            filing_count=clicks,
            failed_run_count=0,
            approved_runs_left_count=0,
        ),
        accuracy=Rates(count=receipts, vendor_ratio=0.95, date_ratio=0.967, total_ratio=0.983),
        expired_reasons={"late": 1},
        processes=[
            ProcessUse(name="balancer", peak_rss_bytes=92_000_000, cpu_s=1.1),
            ProcessUse(name="worker transaction_postprocess", peak_rss_bytes=840_000_000, cpu_s=98.0),
        ],
    )


@pytest.fixture(scope="session")
def night() -> Night:
    """A small night with everything in it."""
    return made_night(accounts=60, receipts=20, clicks=40)


@pytest.fixture(scope="session")
def report(night: Night) -> Report:
    return run_checks(night)
