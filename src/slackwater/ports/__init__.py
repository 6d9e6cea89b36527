"""Ports: what the engine needs of the world, as small protocols.

Instants called `at` and `now` are of the run clock unless they say calendar. Every act of a store is one
transaction, and safe to repeat. A store that does not answer raises `StoreUnavailable`, a broker `BrokerUnavailable`.
Each port has one suite of contract tests, which every adapter passes.
"""

from slackwater.ports.broker import Gauge, Hands, Publisher, Recovery, Results
from slackwater.ports.bundles import BundleStore, ClosedBundle
from slackwater.ports.delivery import Announcement, Begun, Finish, RunStore
from slackwater.ports.held import HoldStore
from slackwater.ports.recovery import DeadLetterStore, LetterFilter, SweepStore
from slackwater.ports.schedule import Ending, EndingStore, FanOutStore, OccurrenceStore
from slackwater.ports.sensed import CanaryStore, PresenceStore, ReadingStore
from slackwater.ports.store import Store
from slackwater.ports.time import Clock

__all__ = [
    "Announcement",
    "Begun",
    "BundleStore",
    "CanaryStore",
    "Clock",
    "ClosedBundle",
    "DeadLetterStore",
    "Ending",
    "EndingStore",
    "FanOutStore",
    "Finish",
    "Gauge",
    "Hands",
    "HoldStore",
    "LetterFilter",
    "OccurrenceStore",
    "PresenceStore",
    "Publisher",
    "ReadingStore",
    "Recovery",
    "Results",
    "RunStore",
    "Store",
    "SweepStore",
]
