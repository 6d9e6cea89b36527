"""Celery's messages as values that can be stored, and published again as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery import Celery
from kombu.compression import compress, decompress
from kombu.serialization import dumps, loads, registry  # type: ignore[attr-defined]  # not in the stubs
from kombu.utils.encoding import str_to_bytes

from slackwater.core.message import Message

_OF_THE_WORKER = frozenset(
    {"args", "kwargs", "callbacks", "errbacks", "chain", "chord", "hostname", "is_eager", "delivery_info"}
    | {"properties", "reply_to", "correlation_id"}
)
"""What a worker adds to a message's headers when it makes a request of them."""
_KEPT = ("correlation_id", "reply_to", "priority", "delivery_mode")
_STALE = frozenset({"redelivered", "x-delivery-count", "x-death", "x-first-death-queue", "x-first-death-exchange"})
"""What a broker has put on an earlier delivery; a fresh message must not carry it."""


def of_published(published: Mapping[str, Any], *, job: str, task: str, queue: str) -> Message:
    """Return what Celery's sender was about to publish (`Sending.capture`)."""
    headers = _fresh(published["headers"])
    body, content_type, content_encoding = _encode(
        published["body"], serializer=published["serializer"], compression=published.get("compression"), headers=headers
    )
    return Message(
        job=job,
        task=task,
        queue=queue,
        headers=headers,
        body=body,
        content_type=content_type,
        content_encoding=content_encoding,
        properties={name: published[name] for name in _KEPT if published.get(name) is not None},
    )


def of_request(app: Celery, task: Any, request: Mapping[str, Any], *, queue: str) -> Message:
    """Return the message that a worker has made a request of; its `eta` is over."""
    headers = _fresh({name: value for name, value in request.items() if name not in _OF_THE_WORKER})
    embed = {name: request.get(name) for name in ("callbacks", "errbacks", "chain", "chord")}
    body, content_type, content_encoding = _encode(
        (request["args"], request["kwargs"], embed),
        serializer=task.serializer or app.conf.task_serializer,
        compression=headers.get("compression"),
        headers=headers,
    )
    given = request.get("properties") or {}
    return Message(
        job=str(request["id"]),
        task=str(request["task"]),
        queue=queue,
        headers=headers | {"eta": None},
        body=body,
        content_type=content_type,
        content_encoding=content_encoding,
        properties={name: given[name] for name in _KEPT if given.get(name) is not None},
    )


def body_of(message: Message) -> tuple[Any, Any, Any]:
    """Return a stored message's body: args, kwargs, and what is linked to it."""
    compression = message.headers.get("compression")
    data = decompress(message.body, compression) if compression else message.body
    args, kwargs, embed = loads(str_to_bytes(data), message.content_type, message.content_encoding, force=True)
    return args, kwargs, embed


def encoded(body: Any, *, like: Message) -> bytes:
    """Return a body serialised and compressed as another message's is."""
    serializer = registry.type_to_name[like.content_type]
    data, _, _ = _encode(body, serializer=serializer, compression=like.headers.get("compression"), headers={})
    return data


def _fresh(headers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in headers.items() if name not in _STALE}


def _encode(body: Any, *, serializer: str, compression: str | None, headers: dict[str, Any]) -> tuple[bytes, str, str]:
    content_type, content_encoding, encoded = dumps(body, serializer=serializer)
    data = encoded.encode(content_encoding) if isinstance(encoded, str) else bytes(encoded)
    if compression:
        data, headers["compression"] = compress(data, compression)
    return data, content_type, content_encoding
