"""Messages word for word: from one that is about to be published, and from one that is being run.

What comes out here and is published by the outlet is, field for field, what Celery itself has published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kombu.compression import compress, decompress
from kombu.serialization import dumps, loads, prepare_accept_content, registry  # type: ignore[attr-defined]

from slackwater.core.message import Message, fresh, kept_properties

_BODY = "slackwater_body"
_ADDED = frozenset(
    {"properties", "reply_to", "correlation_id", "hostname", "delivery_info", "args", "kwargs", "is_eager"}
    | {"callbacks", "errbacks", "chain", "chord"}
)
"""What Celery puts beside the headers into the request of a job that it runs."""


def keep_body(request: Any) -> None:
    """Have a worker's request carry its body as it came to the process that runs it.

    What Celery hands over is decoded, and a task may change its arguments. Among the properties, since what lies
    anywhere else in a request Celery takes for a header, and copies into retries.
    """
    known = request.request_dict
    if request.content_type is not None:
        body = (request.body, request.content_type, request.content_encoding)
        known["properties"] = {**(known.get("properties") or {}), _BODY: body}


def delivered(request: Any) -> dict[str, Any]:
    """Return what a worker's request hands to its tracer, as `message_of` takes it; safe while the pool runs it."""
    # A copy at one go: a pool of threads adds to it.
    known = dict(request.request_dict)
    if request.content_type is None:  # of protocol 1: the tracer takes the links from the body
        args, kwargs, embed = request.body
        known |= {"args": args, "kwargs": kwargs, **(embed or {})}
    return known


def message_of(request: Mapping[str, Any]) -> Message:
    """Return the message that a delivery came in.

    Args:
        request: What Celery's tracer is given, of protocol 2: headers, properties, delivery info, args.
    """
    headers = fresh({name: value for name, value in request.items() if name not in _ADDED})
    properties = dict(request.get("properties") or {})
    kept = properties.pop(_BODY, None)
    body, content_type, content_encoding = kept if kept is not None else _written(request)
    body = _bytes(body, content_encoding)
    if headers.get("compression"):  # kombu has undone it
        body, headers["compression"] = compress(body, headers["compression"])
    delivery = request.get("delivery_info") or {}
    return Message(
        job=str(request["id"]),
        task=str(request["task"]),
        queue=str(delivery.get("routing_key") or ""),
        headers=headers,
        body=body,
        content_type=content_type,
        content_encoding=content_encoding,
        properties=kept_properties(properties),
    )


def request_of(message: Message, *, accept: Iterable[str]) -> dict[str, Any]:
    """Return a message as the request of a job, for whoever ends it: with it a chord or a chain learns of the end.

    Args:
        message: The message.
        accept: Content types that may be decoded; the arguments of one of another type are left out.
    """
    request = {**message.headers, "delivery_info": {}, **kept_properties(message.properties)}
    try:
        args, kwargs, embed = body_of(message, accept=accept)
    except Exception:  # noqa: BLE001  # whatever a serializer raises
        return request
    return {**request, "args": args, "kwargs": kwargs, **embed}


def body_of(message: Message, *, accept: Iterable[str]) -> tuple[Any, Any, Any]:
    """Return a stored message's body: args, kwargs, and what is linked to it.

    Args:
        message: The message.
        accept: Content types that may be decoded.

    Raises:
        ContentDisallowed: It is of another type.
    """
    compression = message.headers.get("compression")
    body = decompress(message.body, compression) if compression else message.body
    args, kwargs, embed = loads(
        body, message.content_type, message.content_encoding, accept=prepare_accept_content(accept)
    )
    return args, kwargs, embed


def encoded(body: Any, *, like: Message) -> bytes:
    """Return a body serialised and compressed as another message's is."""
    serializer = registry.type_to_name[like.content_type]
    _, content_encoding, data = dumps(body, serializer=serializer)
    written = _bytes(data, content_encoding)
    compression = like.headers.get("compression")
    return bytes(compress(written, compression)[0]) if compression else written


def message_published(stock: Callable[..., Any], producer: Any, name: str, message: Any, **options: Any) -> Message:
    """Return the message that Celery's sender would publish, without publishing it.

    The publish signals fire, as at a publish.

    Args:
        stock: The sender that `AMQP._create_task_sender` makes.
        producer: Whom it would publish with; it gives its serializer's and compression's defaults.
        name: Task's name.
        message: Celery's `task_message`.
        options: The sender's other arguments.
    """
    tap = _Tap(producer)
    # Nothing can fail on the way to a tap, so nothing is tried again.
    stock(tap, name, message, **{**options, "retry": False})
    return tap.taken(job=str(message.headers["id"]), task=name)


class _Tap:
    """Stands in for a producer and keeps what it is given."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._published: tuple[Any, dict[str, Any]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def publish(self, body: Any, **options: Any) -> None:
        self._published = body, options

    def taken(self, *, job: str, task: str) -> Message:
        if self._published is None:
            raise LookupError(f"{task} {job}: Celery's sender has published nothing")
        body, options = self._published
        headers = fresh(options["headers"])
        body, content_type, content_encoding = self._producer._prepare(
            body, serializer=options.get("serializer"), compression=options.get("compression"), headers=headers
        )
        # What kombu writes where nobody said anything.
        unset = {"delivery_mode": 2} if "priority" in options else {"priority": 0, "delivery_mode": 2}
        return Message(
            job=job,
            task=task,
            queue=_queue(options),
            headers=headers,
            body=_bytes(body, content_encoding),
            content_type=content_type,
            content_encoding=content_encoding,
            properties={**unset, **kept_properties(options)},
        )


def _queue(options: Mapping[str, Any]) -> str:
    """Return the queue of a publish: named by the default exchange, else the first that is to be declared."""
    declared = options.get("declare") or ()
    if options.get("exchange") or not options.get("routing_key"):
        return str(declared[0].name) if declared else str(options.get("routing_key") or "")
    return str(options["routing_key"])


def _written(request: Mapping[str, Any]) -> tuple[Any, str, str]:
    embed = {name: request.get(name) for name in ("callbacks", "errbacks", "chain", "chord")}
    content_type, content_encoding, body = dumps([request.get("args"), request.get("kwargs"), embed], serializer="json")
    return body, content_type, content_encoding


def _bytes(body: Any, encoding: str | None) -> bytes:
    if isinstance(body, str):
        return body.encode("utf-8" if encoding in (None, "binary") else encoding)
    return bytes(body)
