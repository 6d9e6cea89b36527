"""Slackwater: a Celery batch scheduler that is really a load balancer."""

from slackwater.adapters.celery.fan_out import FanOut
from slackwater.adapters.celery.fence import Fence
from slackwater.adapters.celery.publishing import Published
from slackwater.app import Slackwater
from slackwater.core.cadence import Crontab, Interval, crontab, every
from slackwater.core.job import JobState
from slackwater.core.lane import Lane, Pool
from slackwater.core.occurrence import Occurrence, OccurrenceState
from slackwater.core.reading import LaneReading, Presence
from slackwater.core.resource import Resource, ResourceKind, host, model, peer
from slackwater.core.retry import Backoff
from slackwater.core.schedule import Entry, Schedule
from slackwater.core.spans import hours, minutes, seconds
from slackwater.core.tempo import Tempo
from slackwater.settings import Settings

__all__ = [
    "Backoff",
    "Crontab",
    "Entry",
    "FanOut",
    "Fence",
    "Interval",
    "JobState",
    "Lane",
    "LaneReading",
    "Occurrence",
    "OccurrenceState",
    "Pool",
    "Presence",
    "Published",
    "Resource",
    "ResourceKind",
    "Schedule",
    "Settings",
    "Slackwater",
    "Tempo",
    "crontab",
    "every",
    "host",
    "hours",
    "minutes",
    "model",
    "peer",
    "seconds",
]
