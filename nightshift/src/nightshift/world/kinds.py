"""What a call asks for, what may be wrong with it, and what its caller gets in the end."""

from __future__ import annotations

from enum import StrEnum

DIED_EXIT_CODE = 70
"""What a world ends with that dies by its script of faults."""


class PathKind(StrEnum):
    """What a call asked for."""

    DETAILS = "details"
    BALANCES = "balances"
    TRANSACTIONS = "transactions"
    FILING_SUBMIT = "filing_submit"
    FILING_LOOKUP = "filing_lookup"
    SESSION = "session"
    """The way to a consent, and back: authorization, session, revocation. Free of latency, limit and faults."""
    OTHER = "other"


AGGREGATOR_KINDS = frozenset({PathKind.DETAILS, PathKind.BALANCES, PathKind.TRANSACTIONS})


class Fault(StrEnum):
    """What was wrong with a call, or with its answer."""

    RATE_LIMIT = "rate_limit"
    """The rate limit refused it: it asked too fast."""
    SCRIPTED_429 = "scripted_429"
    """Let in, then throttled by the script."""
    SCRIPTED_5XX = "scripted_5xx"
    """Let in, then failed by the script after its latency."""
    HANG = "hang"
    """Let in and carried out; no answer ever comes."""
    TRUNCATED = "truncated"
    """Half of the answer's body comes, then the connection is closed."""
    LOST_ANSWER = "lost_answer"
    """Let in and carried out; the connection is closed instead of an answer."""
    DEATH = "death"
    """Let in, carried out and booked; then the world's process dies."""
    SLOW = "slow"
    """Takes some times its latency."""
    REPEATED_PAGE = "repeated_page"
    """A page of transactions comes that came before, and then the listing goes on."""
    ENDLESS_PAGE = "endless_page"
    """A page of transactions leads to itself."""
    CONSENT_ENDED = "consent_ended"
    """The customer has revoked the consent at the bank."""


class Outcome(StrEnum):
    """What a caller got in the end."""

    ANSWERED = "answered"
    """A whole answer, whatever its status."""
    TRUNCATED = "truncated"
    """Half an answer."""
    NO_ANSWER = "no_answer"
    """A connection that was closed."""
    CALLER_LEFT = "caller_left"
    """Nothing: it had gone before, or gave up waiting."""
    CLOSING = "closing"
    """Nothing of its own: the world was ended in the middle."""
    DIED = "died"
    """Nothing: the world died of it."""
