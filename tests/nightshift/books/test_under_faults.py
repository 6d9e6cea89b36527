"""All of a night's jobs at once against a world that hangs, breaks off, loses answers and throttles: run until done."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from nightshift.banking.client import AggregatorClient
from nightshift.banking.syncing import Teller, refresh_account, sync_account
from nightshift.books.generator import Scale, generate
from nightshift.books.models import Account, AgentRun, Filing, Transaction
from nightshift.books.morning import MorningCounts, morning_counts
from nightshift.connecting import connect_accounts
from nightshift.filings.client import FilingClient
from nightshift.filings.submitting import file_run
from nightshift.peers import OutcomeUnknown, PeerUnavailable, RetryRule
from nightshift.world.books import read_calls, read_filings
from nightshift.world.kinds import Fault
from nightshift.world.limiter import RateLimit
from nightshift.world.testing import CREDENTIALS, FILING_TOKENS, TOKENS, running_world, write_faults
from nightshift.world_process import World

ACCOUNTS, RUNS, PATIENCE = 20, 20, 20
RULE = RetryRule(timeout=timedelta(seconds=1), backoffs=(timedelta(0),) * 2)
HARD = [
    {"fault": "hang", "ratio": 0.05},
    {"fault": "truncated", "ratio": 0.1},
    {"fault": "lost_answer", "ratio": 0.1},
    {"fault": "scripted_5xx", "ratio": 0.1},
    {"fault": "scripted_429", "ratio": 0.12, "retry_after_s": 0},
    {"fault": "repeated_page", "ratio": 0.3},
]


class OpenPacer:
    def wait(self) -> None:
        return


def until_done(job: Callable[[], object]) -> int:
    """Run a job again as long as its peer is no help, as its queue would; return how many times it took."""
    for times in range(1, PATIENCE):
        try:
            job()
        except (PeerUnavailable, OutcomeUnknown):
            continue
        return times
    job()
    return PATIENCE


def counts(engine: Engine, now: datetime) -> MorningCounts:
    with Session(engine) as session:
        return morning_counts(session, now)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_job_is_done_in_the_end_and_nothing_took_effect_twice(
    tmp_path: Path, engine: Engine, now: datetime, seed: int
) -> None:
    generate(engine, Scale(tenants=4, accounts=ACCOUNTS, receipts=0, runs=RUNS), seed=seed, now=now, folder=tmp_path)
    options = {**write_faults(tmp_path, *HARD), "--seed": str(seed), "--consents-required": "", "--page-size": "20"}
    CREDENTIALS.write(tmp_path / "application.json")
    with (
        running_world(tmp_path / "world.sqlite", options) as running,
        AggregatorClient(running.url, TOKENS, pacer=OpenPacer(), rule=RULE) as aggregator,
        FilingClient(running.url, FILING_TOKENS, rule=RULE) as gateway,
        ThreadPoolExecutor(12) as threads,
    ):
        limit = RateLimit(calls_per_second=12, burst=6)
        connect_accounts(
            engine,
            World(
                url=running.url,
                credentials=tmp_path / "application.json",
                books=running.books,
                rate_limit=limit,
            ),
        )
        teller = Teller(open_session=lambda: Session(engine), aggregator=aggregator, now=lambda: now)

        def file(run: int) -> str:
            return file_run(
                run, open_session=lambda: Session(engine), gateway=gateway, job_id=f"run-{run}", now=lambda: now
            )

        jobs: list[Callable[[], object]] = []
        for number in range(1, ACCOUNTS + 1):
            jobs.append(lambda number=number: sync_account(teller, number, job_id=f"sync-{number}"))  # type: ignore[misc]
            jobs.append(lambda number=number: refresh_account(teller, number, job_id=f"r-{number}"))  # type: ignore[misc]
        jobs += [lambda number=number: file(number) for number in range(1, RUNS + 1)]  # type: ignore[misc]
        tries = list(threads.map(until_done, jobs))
        done = counts(engine, now)
        list(threads.map(until_done, jobs[-RUNS:]))  # every filing once more: each is there already
        calls, filings = read_calls(running.books), read_filings(running.books)
    assert max(tries) > 1, "the script was no trouble at all"
    assert {Fault.HANG, Fault.TRUNCATED, Fault.LOST_ANSWER, Fault.SCRIPTED_5XX} <= {call.fault for call in calls}
    assert (done.synced_account_count, done.refreshed_account_count) == (ACCOUNTS, ACCOUNTS)
    assert (done.submitted_run_count, done.filing_count, done.approved_runs_left_count) == (RUNS, RUNS, 0)
    assert counts(engine, now).filing_count == len(filings) == RUNS
    assert_both_sides_agree(engine, {one.idempotency_key: one.filing_id for one in filings})


def assert_both_sides_agree(engine: Engine, theirs: dict[str, str]) -> None:
    with Session(engine) as session:
        ours = {one.key: one.gateway_filing_id for one in session.scalars(select(Filing))}
        states = set(session.scalars(select(AgentRun.state)))
        synced = set(session.scalars(select(Account.last_synced_by)))
        entries = session.scalar(select(func.count(Transaction.id)))
        distinct = session.scalar(
            select(func.count()).select_from(
                select(Transaction.account_id, Transaction.entry_reference).distinct().subquery()
            )
        )
    assert ours == theirs
    assert states == {"submitted"}
    assert synced == {f"sync-{number}" for number in range(1, ACCOUNTS + 1)}
    assert entries == distinct
