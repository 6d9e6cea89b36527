"""Calling a peer: what can go wrong, and whether to ask again.

PeerError
├── PeerUnavailable     no answer, or none that helps, also after the retries; may be tried again later
├── PeerRejected        the peer refused this request; the same request will be refused again
│   └── ConsentEnded    the customer's consent for an account is over; only the customer can give a new one
├── PeerAnswerInvalid   the peer answered something that its interface does not know
├── OutcomeUnknown      a submission may or may not have taken effect: look it up, never just send it again
└── PacerUnavailable    the shared call pacer cannot be reached; no call was made
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

CALL_TIMEOUT = dt.timedelta(seconds=60)
CONNECT_TIMEOUT = dt.timedelta(seconds=10)


class PeerError(Exception):
    """Root of what a call to a peer can raise.

    Attributes:
        peer: Which peer, as a word.
        remedy: What to do about it.
        retry_after: How long the peer asked to be left alone, or None.
    """

    def __init__(self, what: str, *, peer: str, remedy: str, retry_after: dt.timedelta | None = None) -> None:
        super().__init__(f"{peer}: {what}; {remedy}")
        self.peer = peer
        self.remedy = remedy
        self.retry_after = retry_after

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
        super().__init__(what, peer=peer, remedy=remedy, retry_after=retry_after)
        self.status = status


class PeerRejected(PeerError):  # as above
    """The peer refused the request itself.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, what: str, *, peer: str, remedy: str, status: int) -> None:
        super().__init__(what, peer=peer, remedy=remedy)
        self.status = status


class ConsentEnded(PeerRejected):  # as above
    """The consent that an account is read under is expired, revoked or closed: final until the customer renews it.

    Attributes:
        account: The aggregator's id of the account.
        code: The interface's word, as EXPIRED_SESSION.
    """

    def __init__(self, *, peer: str, account: str, code: str, status: int) -> None:
        what = f"the consent for account {account} is over ({code})"
        super().__init__(what, peer=peer, remedy="ask the customer for a new consent", status=status)
        self.account = account
        self.code = code


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
        timeout: Longest wait for each step of a call but the first: sending, each piece of the answer.
        connect_timeout: Longest wait for the first step, a connection.
        backoffs: Waits after a failed try (5xx, or no answer), one for each further try.
        throttled_limit: How many times one call may be throttled (429) before it gives up.
        throttled_wait: Wait after a 429 that names none.
        longest_wait: A peer that asks for more than this gets no further try now: a slot is not to be held so
            long.
        jitter_ratio: Up to this share is added to a wait that the peer asked for, so that callers spread.
    """

    timeout: dt.timedelta = CALL_TIMEOUT
    connect_timeout: dt.timedelta = CONNECT_TIMEOUT
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


def after_failure(tries: Tries, retry_after: dt.timedelta | None = None, *, rule: RetryRule) -> NextTry:
    """Decide whether to ask again after a 5xx or no answer (bounded backoff).

    Args:
        tries: What the call has been through, the last failure included.
        retry_after: What the peer asked for, or None if it said nothing that can be read.
        rule: How patient to be.
    """
    if tries.failed > len(rule.backoffs):
        return NextTry(wait=None, reason=f"failed {tries.failed} times")
    wait = max(rule.backoffs[tries.failed - 1], retry_after or dt.timedelta(0))
    if wait > rule.longest_wait:
        return NextTry(wait=None, reason=_asked_too_much(wait))
    return NextTry(wait=wait, reason=f"failure {tries.failed}: backing off")


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
        return NextTry(wait=None, reason=_asked_too_much(wait))
    return NextTry(wait=wait * (1 + rule.jitter_ratio * chance), reason="throttled: waiting as asked")


def _asked_too_much(wait: dt.timedelta) -> str:
    return f"asked to wait {wait.total_seconds():g} s, longer than a slot is held"
