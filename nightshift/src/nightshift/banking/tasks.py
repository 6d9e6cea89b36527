"""The banks' jobs, one an account: the sync of its entries, and the refresh of its details and balance.

One body at a time is at an account: sync and refresh share its lease, since both read under the same consent, which
banks serve one caller at a time, and both write its balance. What they write is fenced.
"""

from __future__ import annotations

from typing import Any

from nightshift.app import app, connections, sw
from nightshift.banking.syncing import Teller, refresh_account, sync_account
from nightshift.books.sync_ledger import accounts_to_sync
from slackwater import hours

ONE_BODY = "account:{account_id}"
SYNC_KEY, REFRESH_KEY = "sync:{account_id}", "refresh:{account_id}"
FRESH_FOR = hours(6)
"""An account that was synced at night is good for the morning: the second fan-out, at half past six, takes up only what
the first one, at two, has not brought."""


@app.task(name="update_all_transactions", lane="transaction_sync")
def update_all_transactions() -> int:
    """Fan out one sync for each account whose consent is valid; return how many were published."""
    return len(sw.fan_out(update_transactions_by_bank_account, _accounts()).published)


@app.task(
    name="update_transactions_by_bank_account",
    lane="transaction_sync",
    bind=True,
    key=SYNC_KEY,
    fresh_for=FRESH_FOR,
    lease=ONE_BODY,
)
def update_transactions_by_bank_account(self: Any, account_id: int) -> int:
    """Sync an account; return how many entries were new. Safe to run twice."""
    return sync_account(_teller(), account_id, job_id=str(self.request.id))


@app.task(name="update_accounts", lane="transaction_sync")
def update_accounts() -> int:
    """Fan out one refresh for each account whose consent is valid; return how many were published."""
    return len(sw.fan_out(update_account, _accounts()).published)


@app.task(
    name="update_account", lane="transaction_sync", bind=True, key=REFRESH_KEY, fresh_for=FRESH_FOR, lease=ONE_BODY
)
def update_account(self: Any, account_id: int) -> bool:
    """Refresh an account's details and balance; return whether this run wrote them. Safe to run twice."""
    return refresh_account(_teller(), account_id, job_id=str(self.request.id))


def _accounts() -> list[tuple[int]]:
    with connections.session() as session:
        return [(account,) for account in accounts_to_sync(session, sw.clock.calendar())]


def _teller() -> Teller:
    return Teller(
        open_session=connections.session,
        aggregator=connections.aggregator,
        now=sw.clock.calendar,
        fenced=sw.fenced,
    )
