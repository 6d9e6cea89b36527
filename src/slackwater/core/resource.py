"""Resources: what work waits on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ResourceKind(StrEnum):
    """The kinds of thing that work waits on."""

    HOST = "host"
    """Cores and memory of the machine that runs the body."""
    MODEL = "model"
    """Streams of a model endpoint."""
    PEER = "peer"
    """Another party's quota or rate limit."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Something that work waits on.

    Attributes:
        name: Unique among an application's resources.
        kind: Host, model or peer.
        calls_per_second: A peer's rate limit, in calls per second; None where there is none.
    """

    name: str
    kind: ResourceKind
    calls_per_second: float | None = None

    def __post_init__(self) -> None:
        if self.calls_per_second is not None and not self.calls_per_second > 0:
            raise ValueError(
                f"resource {self.name!r}: calls_per_second must be above zero, not {self.calls_per_second}"
            )


host = Resource(name="host", kind=ResourceKind.HOST)
"""The machine that runs the body."""


def model(name: str = "model") -> Resource:
    """Return a model endpoint as a resource."""
    return Resource(name=name, kind=ResourceKind.MODEL)


def peer(name: str, *, calls_per_second: float | None = None) -> Resource:
    """Return another party's service as a resource, with its rate limit in calls per second."""
    return Resource(name=name, kind=ResourceKind.PEER, calls_per_second=calls_per_second)
