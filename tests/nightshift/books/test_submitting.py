"""Filing a run, whatever dies in between: a real gateway, real books, at most one filing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.nightshift.books.conftest import NOW

from nightshift.books.models import AgentRun, Filing
from nightshift.books.runs import begin_submission
from nightshift.filings.client import FilingClient, FilingReceipt
from nightshift.filings.submitting import SUBMISSIONS, file_run, filing_key
from nightshift.peers import OutcomeUnknown, PeerRejected, PeerUnavailable, RetryRule
from nightshift.tokens import TokenSource
from nightshift.world.books import read_calls, read_filings
from nightshift.world.kinds import Outcome, PathKind
from nightshift.world.testing import FILING_TOKENS, TOKENS, RunningWorld, running_world, write_faults

PATIENT, HASTY = (RetryRule(timeout=timedelta(seconds=given), backoffs=()) for given in (30, 1))
"""The hasty one is for peers that hang: a machine that is busy takes a second to answer, too."""
SUBMIT, LOOKUP = PathKind.FILING_SUBMIT, PathKind.FILING_LOOKUP

File = Callable[..., str]


@pytest.fixture
def file(engine: Engine, session: Session, now: datetime) -> File:
    """File run 1 with a gateway, as a job."""

    def call(gateway: Any, *, job: str = "job-1", run_id: int = 1) -> str:
        return file_run(run_id, open_session=lambda: Session(engine), gateway=gateway, job_id=job, now=lambda: now)

    return call


@contextmanager
def gateway(
    tmp_path: Path, *rules: dict[str, Any], tokens: TokenSource = FILING_TOKENS
) -> Iterator[tuple[FilingClient, RunningWorld]]:
    hangs = any(rule["fault"] == "hang" for rule in rules)
    with (
        running_world(tmp_path / "world.sqlite", write_faults(tmp_path, *rules)) as world,
        FilingClient(world.url, tokens, rule=HASTY if hangs else PATIENT) as client,
    ):
        yield client, world


def run_state(engine: Engine, run_id: int = 1) -> tuple[str, str | None, str | None]:
    with Session(engine) as session:
        run = session.get_one(AgentRun, run_id)
        return run.state, run.filing_key, run.filing_id


def kinds(world: RunningWorld) -> list[PathKind]:
    return [call.kind for call in read_calls(world.books)]


def assert_filed_once(engine: Engine, world: RunningWorld, filing_id: str) -> None:
    [theirs] = read_filings(world.books)
    with Session(engine) as session:
        ours = session.query(Filing).one()
    assert ours.gateway_filing_id == theirs.filing_id == filing_id
    assert ours.key == theirs.idempotency_key == "agent-run:1"
    assert run_state(engine) == ("submitted", "agent-run:1", filing_id)


def test_a_run_is_filed_with_one_call_and_a_second_time_with_none(tmp_path: Path, file: File, engine: Engine) -> None:
    with gateway(tmp_path) as (client, world):
        filing_id = file(client)
        assert file(client, job="job-2") == filing_id
        assert kinds(world) == [SUBMIT]
        assert_filed_once(engine, world, filing_id)


def test_the_key_is_committed_before_the_gateway_hears_of_it(file: File, engine: Engine) -> None:
    seen: list[tuple[str, str | None, str | None]] = []

    class Looking:
        def submit(self, key: str, body: dict[str, object], *, job_id: str) -> FilingReceipt:
            seen.append(run_state(engine))
            raise PeerUnavailable("throttled", peer="filing gateway", status=429, retry_after=timedelta(seconds=9))

        def lookup(self, key: str, *, job_id: str) -> FilingReceipt | None:
            raise AssertionError("nothing was sent: there is nothing to be asked")

    with pytest.raises(PeerUnavailable) as raised:
        file(Looking())
    assert seen == [("submitting", "agent-run:1", None)]
    assert raised.value.retry_after == timedelta(seconds=9)
    assert run_state(engine) == ("submitting", "agent-run:1", None)


@pytest.mark.parametrize("fault", ["hang", "truncated", "lost_answer"])
def test_after_an_unknown_outcome_the_gateway_is_asked_and_nothing_is_sent_again(
    tmp_path: Path, file: File, engine: Engine, fault: str
) -> None:
    with gateway(tmp_path, {"fault": fault, "kinds": ["filing_submit"]}) as (client, world):
        filing_id = file(client)
        assert kinds(world) == [SUBMIT, LOOKUP]
        assert_filed_once(engine, world, filing_id)


def test_what_the_gateway_does_not_know_is_submitted_again_under_the_same_key(
    tmp_path: Path, file: File, engine: Engine
) -> None:
    failing = {"fault": "scripted_5xx", "kinds": ["filing_submit"], "asks": [0]}  # and takes no effect
    with gateway(tmp_path, failing) as (client, world):
        filing_id = file(client)
        assert kinds(world) == [SUBMIT, LOOKUP, SUBMIT]
        assert {call.subject for call in read_calls(world.books)} == {"agent-run:1"}
        assert_filed_once(engine, world, filing_id)


def test_a_gateway_that_never_says_a_word_is_left_alone_after_some_tries(
    tmp_path: Path, file: File, engine: Engine
) -> None:
    with gateway(tmp_path, {"fault": "scripted_5xx", "kinds": ["filing_submit"]}) as (client, world):
        with pytest.raises(OutcomeUnknown):
            file(client)
        assert kinds(world) == [SUBMIT, LOOKUP] * SUBMISSIONS
    assert run_state(engine) == ("submitting", "agent-run:1", None)


def test_a_gateway_that_dies_after_accepting_is_asked_by_the_next_run(
    tmp_path: Path, file: File, engine: Engine
) -> None:
    dying = {"fault": "death", "kinds": ["filing_submit"], "asks": [0]}
    with gateway(tmp_path, dying) as (client, world):
        with pytest.raises(PeerUnavailable):  # the question after the unknown outcome finds nobody
            file(client)
        world.process.wait(timeout=20)
    assert run_state(engine) == ("submitting", "agent-run:1", None)
    with gateway(tmp_path) as (client, world):
        filing_id = file(client, job="job-2")
        assert kinds(world) == [SUBMIT, LOOKUP]  # the dead one's submission, and the question alone
        assert read_calls(world.books)[0].outcome is Outcome.DIED
        assert_filed_once(engine, world, filing_id)


def test_who_died_before_the_call_is_followed_by_one_that_asks_and_files(
    tmp_path: Path, file: File, engine: Engine
) -> None:
    with Session(engine) as session:
        begin_submission(session, 1, key=filing_key(1), job_id="dead", at=NOW)
    with gateway(tmp_path) as (client, world):
        filing_id = file(client, job="job-2")
        assert kinds(world) == [LOOKUP, SUBMIT]
        assert_filed_once(engine, world, filing_id)


def test_who_died_before_writing_the_filing_down_is_followed_by_one_that_asks(
    tmp_path: Path, file: File, engine: Engine
) -> None:
    with gateway(tmp_path) as (client, world):
        with Session(engine) as session:
            begin_submission(session, 1, key=filing_key(1), job_id="dead", at=NOW)
        body = {"run_id": 1, "kind": "vat_return", "period": "2026-10"}
        client.submit(filing_key(1), body, job_id="dead")
        filing_id = file(client, job="job-2")
        assert kinds(world) == [SUBMIT, LOOKUP]
        assert_filed_once(engine, world, filing_id)


def test_a_gateway_that_cannot_be_asked_is_asked_later(tmp_path: Path, file: File, engine: Engine) -> None:
    silent = {"fault": "hang", "kinds": ["filing_submit", "filing_lookup"], "asks": [0]}
    with gateway(tmp_path, silent) as (client, world):
        with pytest.raises(PeerUnavailable, match="asking again is safe"):
            file(client)
        assert run_state(engine) == ("submitting", "agent-run:1", None)
        filing_id = file(client, job="job-2")
        assert kinds(world) == [SUBMIT, LOOKUP, LOOKUP]
        assert_filed_once(engine, world, filing_id)


def test_eight_at_the_same_moment_make_one_filing(tmp_path: Path, file: File, engine: Engine) -> None:
    with gateway(tmp_path) as (client, world):
        with ThreadPoolExecutor(8) as threads:
            filed = set(threads.map(lambda number: file(client, job=f"job-{number}"), range(8)))
        assert len(filed) == 1
        assert_filed_once(engine, world, filed.pop())


def test_a_filing_that_is_refused_fails_its_run(tmp_path: Path, file: File, engine: Engine) -> None:
    with gateway(tmp_path) as (client, world):
        client.submit(filing_key(1), {"another": "body"}, job_id="somebody")
        with pytest.raises(PeerRejected, match="idempotency_key_reused"):
            file(client)
        assert len(read_filings(world.books)) == 1
    assert run_state(engine) == ("failed", "agent-run:1", None)


def test_a_refusal_of_ourselves_leaves_the_run_to_be_filed_later(tmp_path: Path, file: File, engine: Engine) -> None:
    with gateway(tmp_path, tokens=TOKENS) as (client, world):  # tokens for another peer
        with pytest.raises(PeerRejected, match="credentials"):
            file(client)
        assert run_state(engine) == ("submitting", "agent-run:1", None)
        with FilingClient(world.url, FILING_TOKENS, rule=PATIENT) as right:
            filing_id = file(right, job="job-2")
        assert_filed_once(engine, world, filing_id)
