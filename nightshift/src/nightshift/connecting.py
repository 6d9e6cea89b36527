"""Connecting the customers' accounts before a night: one consent a customer, as they once gave it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from nightshift.banking.consents import ConsentClient, agree, browser
from nightshift.books.consents import accounts_by_tenant, record_consent
from nightshift.errors import NightError
from nightshift.peers import PeerError
from nightshift.tokens import AGGREGATOR, Credentials, TokenSource
from nightshift.world_process import World

JOB = "connecting"
LASTS = timedelta(days=90)


def connect_accounts(books: Engine, world: World) -> int:
    """Get a consent from every customer for all of its accounts, and write its session into the books.

    Returns:
        How many consents were given.

    Raises:
        NightError: The aggregator refuses, or does not answer.
    """
    tokens = TokenSource(Credentials.read(world.credentials), audience=AGGREGATOR)
    with Session(books) as session:
        customers = accounts_by_tenant(session)
    try:
        with ConsentClient(world.url, tokens) as consents, browser() as opener:
            for accounts in customers:
                until = datetime.now(UTC) + LASTS
                uids = [one.aggregator_uid for one in accounts]
                asked = consents.ask_for(uids, bank=accounts[0].bank_name, valid_until=until, job_id=JOB)
                given = consents.authorize(agree(asked, opener), job_id=JOB)
                with Session(books) as session, session.begin():
                    record_consent(session, given.accounts, session_id=given.session_id, lasts_until=given.valid_until)
    except PeerError as error:
        raise NightError(f"the accounts cannot be connected: {error}") from error
    return len(customers)
