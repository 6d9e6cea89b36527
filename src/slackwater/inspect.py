"""Looking at messages and results from outside: for reports, ledgers and tools of an application."""

from slackwater.adapters.brokers.messages import Messages, open_messages
from slackwater.adapters.brokers.results import CeleryResults as JobStates

__all__ = ["JobStates", "Messages", "open_messages"]
