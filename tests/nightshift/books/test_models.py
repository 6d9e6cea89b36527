"""What the database itself refuses, whoever writes."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE nightshift.accounts SET iban = 'not an IBAN' WHERE id = 1", "ck_accounts_iban_form"),
        ("UPDATE nightshift.accounts SET currency = 'eur' WHERE id = 1", "ck_accounts_currency_form"),
        ("UPDATE nightshift.accounts SET last_synced_at = now() WHERE id = 1", "ck_accounts_synced_with_balance"),
        ("UPDATE nightshift.accounts SET tenant_id = 99 WHERE id = 1", "fk_accounts_tenant_id"),
        ("UPDATE nightshift.accounts SET iban = (SELECT iban FROM nightshift.accounts WHERE id = 2) WHERE id = 1",
         "uq_accounts_iban"),
        ("DELETE FROM nightshift.tenants WHERE id = 1", "fk_accounts_tenant_id"),
        ("UPDATE nightshift.agent_runs SET state = 'done', filing_key = 'k', begun_at = now() WHERE id = 1",
         "ck_agent_runs_known_state"),
        ("UPDATE nightshift.agent_runs SET kind = 'letter' WHERE id = 1", "ck_agent_runs_known_kind"),
        ("UPDATE nightshift.agent_runs SET state = 'submitting' WHERE id = 1", "ck_agent_runs_key_before_call"),
        ("UPDATE nightshift.agent_runs SET filing_key = 'k', begun_at = now() WHERE id = 1",
         "ck_agent_runs_key_before_call"),
        ("UPDATE nightshift.agent_runs SET begun_at = now() WHERE id = 1", "ck_agent_runs_begun_at_an_instant"),
        ("UPDATE nightshift.accounts SET syncing_by = 'j' WHERE id = 1", "ck_accounts_syncing_by_a_job"),
        ("UPDATE nightshift.agent_runs SET state = 'submitting', filing_key = 'k', begun_at = now()",
         "uq_agent_runs_filing_key"),
        ("UPDATE nightshift.agent_runs SET state = 'submitted', filing_key = 'k', begun_at = now() WHERE id = 1",
         "ck_agent_runs_submitted_at"),
        ("UPDATE nightshift.agent_runs SET state = 'submitted', filing_key = 'k1', begun_at = now(), filing_id = 'F1', "
         "submitted_at = now() WHERE id = 1", "fk_agent_runs_id"),  # there is no filing
        ("INSERT INTO nightshift.filings (run_id, gateway_filing_id, key, accepted_at) VALUES (1, 'F1', 'k1', now())",
         "fk_filings_run_id"),  # the run has no such key
        ("UPDATE nightshift.attachments SET path = '/etc/passwd' WHERE id = 1", "ck_attachments_path_inside_folder"),
        ("UPDATE nightshift.attachments SET path = 'a/../../b' WHERE id = 1", "ck_attachments_path_inside_folder"),
        ("UPDATE nightshift.attachments SET layout = 'poem' WHERE id = 1", "ck_attachments_known_layout"),
        ("UPDATE nightshift.attachments SET read_at = now() WHERE id = 1", "ck_attachments_read_by_a_job"),
        ("UPDATE nightshift.attachments SET vendor_read = 'x' WHERE id = 1", "ck_attachments_nothing_before_reading"),
        ("UPDATE nightshift.attachments SET read_at = now(), read_by = 'j', read_error = 'x', vendor_read = 'x' "
         "WHERE id = 1",
         "ck_attachments_error_or_facts"),
        ("UPDATE nightshift.attachments SET read_at = now(), read_by = 'j', total_read = 0 WHERE id = 1",
         "ck_attachments_total_above_zero"),
    ],
)  # fmt: skip
def test_the_database_refuses_what_must_not_be(session: Session, statement: str, constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        session.execute(text(statement))


def test_a_submitted_run_cannot_show_the_filing_of_another(session: Session) -> None:
    session.execute(
        text("UPDATE nightshift.agent_runs SET state = 'submitting', filing_key = 'k' || id, begun_at = now()")
    )
    session.execute(
        text(
            "INSERT INTO nightshift.filings (run_id, gateway_filing_id, key, accepted_at) VALUES (1, 'F1', 'k1', now())"
        )
    )
    stolen = "UPDATE nightshift.agent_runs SET state = 'submitted', filing_id = 'F1', submitted_at = now() WHERE id = 2"
    with pytest.raises(IntegrityError, match="fk_agent_runs_id"):
        session.execute(text(stolen))
