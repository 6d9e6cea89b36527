"""Calling a peer: what can go wrong, and whether to ask again.

PeerError
├── PeerUnavailable     no answer, or none that helps, also after the retries; may be tried again later
├── PeerRejected        the peer refused this request; the same request will be refused again
├── PeerAnswerInvalid   the peer answered something that its interface does not know
├── OutcomeUnknown      a submission may or may not have taken effect: look it up, never just send it again
└── PacerUnavailable    the shared call pacer cannot be reached; no call was made
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import httpx2

CALL_TIMEOUT = dt.timedelta(seconds=60)
CONNECTION_LIMIT = 128
_IDLE_SECONDS = 30


class PeerError(Exception):
    """Root of what a call to a peer can raise.

    Attributes:
        peer: Which peer, as a word.
        remedy: What to do about it.
    """

    def __init__(self, what: str, *, peer: str, remedy: str) -> None:
        super().__init__(f"{peer}: {what}; {remedy}")
        self.peer = peer
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by sentence and facts: a worker's pool carries errors from process to process."""
        return _rebuild, (type(self), str(self), self.__dict__)


def _rebuild(kind: type[PeerError], sentence: str, facts: dict[str, object]) -> PeerError:
    error = kind.__new__(kind, sentence)
    error.__dict__.update(facts)
    return error


class PeerUnavailable(PeerError):  # a state of the peer, read as a sentence
    """The peer gave no useful answer, also after the retries.

    Attributes:
        status: HTTP status of the last answer, or None if there was none.
        retry_after: How long the peer asked to be left alone, or None.
    """

    def __init__(
        self,
        what: str,
        *,
        peer: str,
        remedy: str = "try again later",
        status: int | None = None,
        retry_after: dt.timedelta | None = None,
    ) -> None:
        super().__init__(what, peer=peer, remedy=remedy)
        self.status = status
        self.retry_after = retry_after


class PeerRejected(PeerError):  # as above
    """The peer refused the request itself.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, what: str, *, peer: str, remedy: str, status: int) -> None:
        super().__init__(what, peer=peer, remedy=remedy)
        self.status = status


class PeerAnswerInvalid(PeerError):  # as above
    """The peer's answer does not have the shape of its interface."""


class OutcomeUnknown(PeerError):  # as above
    """A submission was sent, and no answer tells what became of it."""


class PacerUnavailable(PeerError):  # as above
    """The call pacer's server cannot be reached; no call was made."""


@dataclass(frozen=True, kw_only=True)
class RetryRule:
    """How patient a caller is.

    Attributes:
        timeout: Longest wait for each step of a call: a connection, sending, each piece of the answer.
        backoffs: Waits after a failed try (5xx, or no answer), one for each further try.
        throttled_limit: How many times one call may be throttled (429) before it gives up.
        throttled_wait: Wait after a 429 that names none.
        longest_wait: A peer that asks for more than this gets no further try now: a slot is not to be held so
            long.
        jitter_ratio: Up to this share is added to a wait that the peer asked for, so that callers spread.
    """

    timeout: dt.timedelta = CALL_TIMEOUT
    backoffs: tuple[dt.timedelta, ...] = tuple(dt.timedelta(seconds=s) for s in (1, 2, 4))
    throttled_limit: int = 5
    throttled_wait: dt.timedelta = dt.timedelta(seconds=1)
    longest_wait: dt.timedelta = dt.timedelta(seconds=30)
    jitter_ratio: float = 0.25


@dataclass(frozen=True, kw_only=True)
class Tries:
    """What one call has been through.

    Attributes:
        failed: Answers 5xx, and tries without an answer.
        throttled: Answers 429.
    """

    failed: int = 0
    throttled: int = 0


@dataclass(frozen=True, kw_only=True)
class NextTry:
    """Whether to ask again.

    Attributes:
        wait: Wait this long, then ask again; None to give up.
        reason: Why, in words.
    """

    wait: dt.timedelta | None
    reason: str


def after_failure(tries: Tries, *, rule: RetryRule) -> NextTry:
    """Decide whether to ask again after a 5xx or no answer (bounded backoff).

    Args:
        tries: What the call has been through, the last failure included.
        rule: How patient to be.
    """
    if tries.failed > len(rule.backoffs):
        return NextTry(wait=None, reason=f"failed {tries.failed} times")
    return NextTry(wait=rule.backoffs[tries.failed - 1], reason=f"failure {tries.failed}: backing off")


def after_throttling(tries: Tries, retry_after: dt.timedelta | None, *, rule: RetryRule, chance: float) -> NextTry:
    """Decide whether to ask again after a 429.

    Args:
        tries: What the call has been through, the last 429 included.
        retry_after: What the peer asked for, or None if it said nothing that can be read.
        rule: How patient to be.
        chance: Number in [0, 1) that spreads the callers.
    """
    wait = rule.throttled_wait if retry_after is None else retry_after
    if tries.throttled >= rule.throttled_limit:
        return NextTry(wait=None, reason=f"throttled {tries.throttled} times")
    if wait > rule.longest_wait:
        return NextTry(wait=None, reason=f"asked to wait {wait.total_seconds():g} s, longer than a slot is held")
    return NextTry(wait=wait * (1 + rule.jitter_ratio * chance), reason="throttled: waiting as asked")


def retry_after_of(response: httpx2.Response) -> dt.timedelta | None:
    """Read `Retry-After` in its form of seconds; None if it is missing or not a number."""
    text = response.headers.get("Retry-After", "")
    return dt.timedelta(seconds=int(text)) if text.isascii() and text.isdigit() else None


def open_connections(base_url: str, token: str, *, rule: RetryRule) -> httpx2.Client:
    """Open a pool of connections to a peer, for up to `CONNECTION_LIMIT` threads of this process.

    Args:
        base_url: Where the peer is.
        token: Bearer token.
        rule: How patient to be.

    Returns:
        A thread-safe client. It must not be carried over a fork.
    """
    return httpx2.Client(
        base_url=base_url,
        headers={"Authorization": f"Bearer {token}"},
        timeout=httpx2.Timeout(rule.timeout.total_seconds()),
        limits=httpx2.Limits(
            max_connections=CONNECTION_LIMIT,
            max_keepalive_connections=CONNECTION_LIMIT,
            keepalive_expiry=_IDLE_SECONDS,  # shorter than the peer's, or requests die on a closed one
        ),
        trust_env=False,  # a proxy in the environment is not meant for these peers
    )
