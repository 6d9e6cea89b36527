"""Looking at messages, results and marks from outside: for reports, ledgers and tools of an application."""

from slackwater.adapters.brokers.messages import Messages, open_messages
from slackwater.adapters.brokers.results import CeleryResults as JobStates
from slackwater.adapters.celery.publishing import mark_of
from slackwater.core.job import Mark

__all__ = ["JobStates", "Mark", "Messages", "mark_of", "open_messages"]
