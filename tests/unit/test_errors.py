"""Errors travel: from a pool's process to its worker, inside of what tells the worker to give a delivery back."""

import inspect
import pickle
from uuid import uuid4

import pytest
from celery.exceptions import Reject

from slackwater import errors
from slackwater.errors import BrokerUnavailable, ConfigurationError, SlackwaterError, StaleFence, StoreUnavailable

MADE = (
    ConfigurationError("one", "two"),
    StoreUnavailable("away", where="here"),
    BrokerUnavailable("away", outcome_unknown=True),
    StaleFence("account:7", 3),
)
KINDS = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, SlackwaterError)]


@pytest.mark.parametrize("error", MADE, ids=lambda one: type(one).__name__)
def test_an_error_arrives_as_it_was_sent(error: SlackwaterError) -> None:
    reason = pickle.loads(pickle.dumps(Reject(error, requeue=True))).reason  # noqa: S301
    assert (type(reason), str(reason), vars(reason)) == (type(error), str(error), vars(error))


def test_every_error_with_facts_of_its_own_is_among_them() -> None:
    assert {one for one in KINDS if "__init__" in vars(one)} == {type(one) for one in MADE}


def test_one_that_takes_other_arguments_than_its_sentence_arrives_too() -> None:
    class Local(SlackwaterError):
        def __init__(self, *, job: str) -> None:
            super().__init__(f"job {job}")
            self.job = job

    job = str(uuid4())
    make, given, facts = Local(job=job).__reduce__()
    assert (str(make(*given)), facts) == (f"job {job}", {"job": job})
