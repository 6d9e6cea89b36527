"""Each task's body may run twice: the second run changes nothing in the books, with the broker, or in the world."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.nightshift.tasks.conftest import ACCOUNTS, RECEIPTS, Night

from nightshift.filings.submitting import filing_key
from slackwater.testing import run_twice

ENTRIES = """
    SELECT account_id, entry_reference, booked_on, amount, currency, counterparty, remittance
      FROM nightshift.transactions ORDER BY 1, 2"""
ACCOUNT = "SELECT balance, syncing_by, holder, product, refreshed_by FROM nightshift.accounts WHERE id = 1"
READING = "SELECT vendor_read, date_read, total_read, read_by, read_at, read_error FROM nightshift.attachments"
RUN = "SELECT state, filing_key, filing_id FROM nightshift.agent_runs WHERE id = "
FILED = "SELECT run_id, gateway_filing_id, key, accepted_at FROM nightshift.filings WHERE run_id = "


def filed(night: Night, run: int) -> Callable[[], Any]:
    """Return what tells how a run is filed, by our books and by the world's."""
    return lambda: (
        night.rows(f"{RUN}{run}"),
        night.rows(f"{FILED}{run}"),
        [(one.filing_id, one.body) for one in night.filings() if one.idempotency_key == filing_key(run)],
    )


@pytest.mark.parametrize("name", ["update_all_transactions", "update_accounts"])
def test_a_fan_out_over_accounts_publishes_the_same_jobs_again(night: Night, name: str) -> None:
    twice = run_twice(night.task(name), effects=night.waiting)
    assert len(twice.effects) == ACCOUNTS
    assert twice.first == twice.second == ACCOUNTS


def test_the_sweep_publishes_the_same_readings_again(night: Night) -> None:
    twice = run_twice(night.task("categorize_uncategorized_transactions"), effects=night.waiting)
    assert len(twice.effects) == RECEIPTS


def test_a_sync_writes_each_entry_once_and_takes_its_mark_off(night: Night) -> None:
    # What the world books between two asks of one day comes with the second; entries of earlier days do not change.
    def old() -> Any:
        entries = [row for row in night.rows(ENTRIES) if row[2] < night.sw.clock.calendar().date()]
        return entries, night.rows("SELECT last_synced_by, syncing_by FROM nightshift.accounts WHERE id = 1")

    task = night.task("update_transactions_by_bank_account")
    twice = run_twice(task, args=(1,), effects=old)
    assert twice.first > 0
    [(synced_by, syncing_by)] = twice.effects[1]
    assert synced_by is not None
    assert syncing_by is None
    assert len(night.rows(ENTRIES)) == len({row[:2] for row in night.rows(ENTRIES)})


def test_a_refresh_leaves_the_account_as_it_was(night: Night) -> None:
    twice = run_twice(night.task("update_account"), args=(1,), effects=lambda: night.rows(ACCOUNT))
    [(balance, syncing_by, _, product, refreshed_by)] = twice.effects
    assert None not in (balance, product, refreshed_by)
    assert syncing_by is None


def test_a_receipt_is_read_once(night: Night) -> None:
    twice = run_twice(night.task("extract_data_from_attachment"), args=(1,), effects=lambda: night.rows(READING))
    assert (twice.first, twice.second) == (True, False)


def test_a_run_is_filed_once(night: Night) -> None:
    twice = run_twice(night.task("submit_approved_run"), args=(1,), effects=filed(night, 1))
    assert twice.first == twice.second
    assert len(twice.effects[2]) == 1


def test_a_run_is_filed_once_though_the_first_body_died_before_it_wrote_the_filing_down(night: Night) -> None:
    def forget() -> None:
        night.execute(
            "UPDATE nightshift.agent_runs SET state = 'submitting', submitted_at = NULL, filing_id = NULL WHERE id = 2",
            "DELETE FROM nightshift.filings WHERE run_id = 2",
        )

    twice = run_twice(night.task("submit_approved_run"), args=(2,), effects=filed(night, 2), between=forget)
    assert twice.first == twice.second
    assert len(twice.effects[2]) == 1
