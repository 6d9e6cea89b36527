"""Our states, by what a result backend keeps."""

import pytest
from celery.exceptions import TaskRevokedError

from slackwater.adapters.brokers.results import state_of
from slackwater.core.job import JobState


def _revoked(message: object) -> dict[str, object]:
    result = {"exc_type": "TaskRevokedError", "exc_message": message, "exc_module": "celery.exceptions"}
    return {"status": "REVOKED", "result": result}


@pytest.mark.parametrize("message", [["expired: late"], ("expired",), "expired"])
def test_a_revocation_that_says_expired_is_an_expiry(message: object) -> None:
    assert state_of(_revoked(message)) is JobState.EXPIRED


@pytest.mark.parametrize("message", [["terminated"], [], "", None, ["not expired"]])
def test_any_other_revocation_is_one(message: object) -> None:
    assert state_of(_revoked(message)) is JobState.REVOKED


def test_an_exception_kept_as_an_object_is_understood_as_well() -> None:
    assert state_of({"status": "REVOKED", "result": TaskRevokedError("expired: late")}) is JobState.EXPIRED
    assert state_of({"status": "REVOKED", "result": TaskRevokedError("revoked")}) is JobState.REVOKED


def test_a_revocation_without_a_reason_is_one() -> None:
    assert state_of({"status": "REVOKED"}) is JobState.REVOKED


def test_an_error_that_says_expired_is_still_a_failure() -> None:
    assert state_of({"status": "FAILURE", "result": {"exc_type": "ValueError", "exc_message": ["expired"]}}) is (
        JobState.FAILED
    )
