"""A task's arguments as a store keeps them: in the JSON that a message carries them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kombu.utils import json

from slackwater.errors import ScheduleError


def written(value: tuple[Any, ...] | Mapping[str, Any], *, entry: str) -> str:
    """Return arguments as JSON, dates and identifiers kept as such (kombu's JSON).

    Raises:
        ScheduleError: They cannot be written so.
    """
    try:
        return json.dumps(dict(value) if isinstance(value, Mapping) else list(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ScheduleError(
            f"entry {entry!r}: its arguments cannot be written as JSON ({error}); give plain values"
        ) from error


def positional(text: str) -> tuple[Any, ...]:
    """Return the positional arguments that were written."""
    return tuple(json.loads(text))


def keywords(text: str) -> dict[str, Any]:
    """Return the keyword arguments that were written."""
    return dict(json.loads(text))
