"""Consents: what a person allows an application to see, of which accounts, until when. Sessions stand on them."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID


class SessionStatus(StrEnum):
    """Where a consent stands, in the interface's words."""

    PENDING_AUTHORIZATION = "PENDING_AUTHORIZATION"
    RETURNED_FROM_BANK = "RETURNED_FROM_BANK"
    AUTHORIZED = "AUTHORIZED"
    EXPIRED = "EXPIRED"
    CLOSED = "CLOSED"
    REVOKED = "REVOKED"


CONSENT_REFUSALS = {
    "ACCOUNT_DOES_NOT_EXIST": (404, "No account found matching provided id"),
    "EXPIRED_SESSION": (401, "Session is expired"),
    "CLOSED_SESSION": (401, "Session is closed"),
    "REVOKED_SESSION": (401, "Session is revoked"),
}
"""HTTP status and message of each error that has to do with a consent."""
_REFUSED = {
    SessionStatus.EXPIRED: "EXPIRED_SESSION",
    SessionStatus.CLOSED: "CLOSED_SESSION",
    SessionStatus.REVOKED: "REVOKED_SESSION",
}


@dataclass(frozen=True, kw_only=True)
class Consent:
    """A consent, from the application's request on. Instants are aware.

    Attributes:
        consent_id: Of the authorization (a UUID as text).
        code: What the person's browser brings back, and the application changes for a session.
        session_id: Id of the session, known to the application from `authorized_at` on.
        accounts: The aggregator's ids of the accounts.
        valid_until: When it ends by itself.
        bank: Name of the bank; the country is DE.
        psu_type: business or personal.
        redirect_url: Where the person's browser is sent.
        state: The application's own mark, brought back with the code.
        created_at: When it was asked for.
        given_at: When the person gave it, or None.
        authorized_at: When the application made a session of it, or None.
        closed_at: When the application closed the session, or None.
        revoked_at: When the person revoked it, or None.
    """

    consent_id: str
    code: str
    session_id: str
    accounts: tuple[str, ...]
    valid_until: dt.datetime
    bank: str
    psu_type: str
    redirect_url: str
    state: str
    created_at: dt.datetime
    given_at: dt.datetime | None = None
    authorized_at: dt.datetime | None = None
    closed_at: dt.datetime | None = None
    revoked_at: dt.datetime | None = None

    def status(self, at: dt.datetime) -> SessionStatus:
        """Decide where it stands at an instant."""
        if self.closed_at is not None:
            return SessionStatus.CLOSED
        if self.revoked_at is not None:
            return SessionStatus.REVOKED
        if self.valid_until <= at:
            return SessionStatus.EXPIRED
        if self.authorized_at is not None:
            return SessionStatus.AUTHORIZED
        return SessionStatus.PENDING_AUTHORIZATION if self.given_at is None else SessionStatus.RETURNED_FROM_BANK

    def written(self) -> str:
        """Return it as JSON text for the books."""
        return json.dumps(asdict(self), default=dt.datetime.isoformat)

    @classmethod
    def read(cls, text: str) -> Consent:
        """Read what `written` wrote."""
        facts: dict[str, Any] = json.loads(text)
        instants = {name: dt.datetime.fromisoformat(facts[name]) for name in facts if _is_instant(name, facts[name])}
        return cls(**{**facts, **instants, "accounts": tuple(facts["accounts"])})


class Consents:
    """All consents of a world. Not thread-safe: the event loop's alone."""

    def __init__(self, seed: int, known: Mapping[str, Consent]) -> None:
        """Take over those that the books know, in the order in which they were asked for."""
        self._seed = seed
        self._by_id = dict(known)
        self._of_account: dict[str, str] = {}
        for consent in known.values():
            self._index(consent)

    def put(self, consent: Consent) -> None:
        """Keep a consent as it is now."""
        self._by_id[consent.consent_id] = consent
        self._index(consent)

    def find(self, consent_id: str) -> Consent | None:
        """Return the consent of an authorization's id, or None."""
        return self._by_id.get(consent_id)

    def by_code(self, code: str) -> Consent | None:
        """Return the consent that a code was given for, or None."""
        return next((one for one in self._by_id.values() if one.given_at is not None and one.code == code), None)

    def by_session(self, session_id: str) -> Consent | None:
        """Return the consent of a session, or None."""
        return next((one for one in self._by_id.values() if one.authorized_at and one.session_id == session_id), None)

    def next_id(self, what: str) -> str:
        """Draw an id for the next consent; the same one in every world of this seed."""
        text = f"{self._seed}:{what}:{len(self._by_id)}"
        return str(UUID(bytes=hashlib.blake2b(text.encode(), digest_size=16).digest(), version=4))

    def refusal(self, account: str, *, at: dt.datetime, required: bool) -> str | None:
        """Decide whether an account may be asked for; its last session counts.

        Args:
            account: The aggregator's id of it.
            at: Now.
            required: Whether an account that no session names is refused.

        Returns:
            None if it may, or the interface's error code.
        """
        consent_id = self._of_account.get(account)
        if consent_id is None:
            return "ACCOUNT_DOES_NOT_EXIST" if required else None
        return _REFUSED.get(self._by_id[consent_id].status(at))

    def _index(self, consent: Consent) -> None:
        if consent.authorized_at is None:
            return
        for account in consent.accounts:
            other = self._by_id.get(self._of_account.get(account, ""))
            if other is None or other.authorized_at is None or other.authorized_at <= consent.authorized_at:
                self._of_account[account] = consent.consent_id


def _is_instant(name: str, value: object) -> bool:
    return (name.endswith("_at") or name == "valid_until") and value is not None
