"""RabbitMQ's management interface, for what AMQP does not tell."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from slackwater.engine.outage import Outage
from slackwater.errors import ConfigurationError

_ASKED = "columns=name,messages_unacknowledged"


class Management:
    """Asks the interface; what it does not answer is unknown, and said once."""

    def __init__(self, url: str, *, answer_within: timedelta) -> None:
        """Take an address.

        Args:
            url: `http://USER:PASSWORD@HOST:15672`.
            answer_within: How long an answer may take.

        Raises:
            ConfigurationError: No address of that kind.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigurationError("setting rabbitmq_management_url: give http://USER:PASSWORD@HOST:15672")
        credentials = f"{unquote(parts.username or 'guest')}:{unquote(parts.password or 'guest')}"
        self._authorization = "Basic " + base64.b64encode(credentials.encode()).decode()
        host = parts.netloc.rpartition("@")[2]
        self._base = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._within_s = answer_within.total_seconds()
        self._outage = Outage("RabbitMQ's management interface does not answer, what is unacknowledged is unknown")

    def unacked(self, virtual_host: str) -> Mapping[str, int]:
        """Return what is delivered and not acknowledged, by queue; none where it does not answer.

        Of RabbitMQ's own last count, which is up to five seconds old. A queue that it has not counted yet is absent.
        """
        where = f"{self._base}/api/queues/{quote(virtual_host, safe='')}?{_ASKED}"
        request = urllib.request.Request(where, headers={"Authorization": self._authorization})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=self._within_s) as answer:  # noqa: S310
                queues = json.load(answer)
            found = {one["name"]: one.get("messages_unacknowledged") for one in queues}
        except (OSError, ValueError, TypeError, KeyError) as error:
            self._outage.failed(error)
            return {}
        self._outage.worked()
        return {name: count for name, count in found.items() if isinstance(count, int)}
