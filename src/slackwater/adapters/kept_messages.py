"""Messages as a store keeps them: headers and properties in JSON, texts that any database takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kombu.utils import json

from slackwater.errors import ConfigurationError


def written(values: Mapping[str, Any], *, job: str) -> str:
    """Return headers or properties as JSON, their keys in order; dates and identifiers are kept as such (kombu's JSON).

    Raises:
        ConfigurationError: They cannot be written so.
    """
    try:
        return json.dumps(dict(values), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"job {job}: its headers cannot be kept as JSON ({error}); give plain values to the message's headers"
        ) from error


def read(text: str) -> dict[str, Any]:
    """Return headers or properties that were written."""
    return dict(json.loads(text))


def legible(text: str) -> str:
    """Return a text that can be stored: zero bytes and lone surrogates, as in some errors' messages, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
