"""Signed tokens (JSON Web Token, RFC 7519): an application signs one, a peer checks it.

The signature is HMAC with SHA-256 (HS256) under a secret that both sides hold. The header names the application
(`kid`), the claims say by whom and for whom it is, since when and until when.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from nightshift.errors import NightError

ISSUER = "nightshift"
AGGREGATOR, GATEWAY = "aggregator", "filing-gateway"
"""Audiences: a token for the one does not open the other."""
LONGEST_LIFETIME = dt.timedelta(hours=24)
USUAL_LIFETIME = dt.timedelta(hours=1)
CLOCK_LEEWAY = dt.timedelta(seconds=30)
"""How far two machines' clocks may be apart."""
_ALGORITHM = "HS256"
_SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What an application shows at a peer: its id, and the secret that it signs with."""

    application_id: str
    secret: bytes = field(repr=False)

    @classmethod
    def new(cls) -> Credentials:
        """Draw credentials that nobody else has."""
        return cls(application_id=str(uuid4()), secret=secrets.token_bytes(_SECRET_BYTES))

    @classmethod
    def read(cls, path: Path) -> Credentials:
        """Read a file of `write`.

        Raises:
            NightError: It is not there, or holds no credentials.
        """
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            secret = base64.b64decode(told["secret"], validate=True)
            return cls(application_id=str(told["application_id"]), secret=secret)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NightError(
                f"credentials {path}: cannot be read ({error}); name a file that a night has made"
            ) from error

    def write(self, path: Path) -> None:
        """Write them into a new file that its owner alone can read (mode 0600); an older one is replaced.

        Raises:
            OSError: It cannot be written.
        """
        path.unlink(missing_ok=True)
        told = {"application_id": self.application_id, "secret": base64.b64encode(self.secret).decode()}
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(told, file)


def sign(credentials: Credentials, *, audience: str | tuple[str, ...], at: dt.datetime, lifetime: dt.timedelta) -> str:
    """Make a token.

    Args:
        credentials: Whose it is.
        audience: Which peer, or peers, it is for.
        at: Now (aware).
        lifetime: How long it is good for; a peer refuses more than `LONGEST_LIFETIME`.
    """
    header = {"typ": "JWT", "alg": _ALGORITHM, "kid": credentials.application_id}
    issued = int(at.timestamp())
    claims = {
        "iss": ISSUER,
        "aud": list(audience) if isinstance(audience, tuple) else audience,
        "iat": issued,
        "exp": issued + int(lifetime.total_seconds()),
    }
    text = f"{_encode(json.dumps(header).encode())}.{_encode(json.dumps(claims).encode())}"
    return f"{text}.{_encode(_signature(text, credentials.secret))}"


def why_refused(token: str, credentials: Credentials, *, audience: str, at: dt.datetime) -> str | None:
    """Check a token: its signature first, so that nothing unsigned is believed, then its claims.

    Args:
        token: As it was sent.
        credentials: Those that the peer knows.
        audience: The peer's own name.
        at: Now (aware), by the peer's clock.

    Returns:
        None if it is good, or in words why it is not.
    """
    try:
        text, _, signature = token.rpartition(".")
        header, claims = (_object(part) for part in text.split("."))
        told = _decode(signature)
    except (ValueError, TypeError):
        return "it is no signed token"
    if header.get("alg") != _ALGORITHM:  # whoever signs does not choose how the peer checks ("alg": "none")
        return f"it is not signed with {_ALGORITHM}"
    if header.get("kid") != credentials.application_id:
        return "its application is not known"
    if not hmac.compare_digest(told, _signature(text, credentials.secret)):
        return "its signature is wrong"
    return _why_claims_refused(claims, audience=audience, at=at)


def _why_claims_refused(claims: Mapping[str, Any], *, audience: str, at: dt.datetime) -> str | None:
    given = claims.get("aud")
    if audience not in (given if isinstance(given, list) else [given]):
        return f"it is not for {audience}"
    if claims.get("iss") != ISSUER:
        return f"it is not issued by {ISSUER}"
    issued, expires = claims.get("iat"), claims.get("exp")
    if not (isinstance(issued, int) and isinstance(expires, int)):
        return "it does not say from when until when it is good"
    if expires - issued > LONGEST_LIFETIME.total_seconds():
        return "it is good for more than 24 hours"
    if issued > (at + CLOCK_LEEWAY).timestamp():
        return "it is issued in the future"
    return "it is expired" if expires <= at.timestamp() else None


class TokenSource:
    """Signs tokens for one peer, keeps one while it is good, and signs the next one in time. Thread-safe."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        audience: str,
        lifetime: dt.timedelta = USUAL_LIFETIME,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        """Set up a source; nothing is signed yet.

        Args:
            credentials: Whose tokens they are.
            audience: The peer.
            lifetime: Of each token.
            now: Clock (aware).
        """
        self._credentials = credentials
        self._audience = audience
        self._lifetime = lifetime
        self._now = now
        self._lock = Lock()
        self._token = ""
        self._renew_at = dt.datetime.min.replace(tzinfo=dt.UTC)

    def token(self) -> str:
        """Return a token that is good for a tenth of its lifetime at least."""
        with self._lock:
            now = self._now()
            if now >= self._renew_at:
                self._token = sign(self._credentials, audience=self._audience, at=now, lifetime=self._lifetime)
                self._renew_at = now + 0.9 * self._lifetime
            return self._token


def _signature(text: str, secret: bytes) -> bytes:
    return hmac.new(secret, text.encode(), hashlib.sha256).digest()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _object(part: str) -> dict[str, Any]:
    told = json.loads(_decode(part))
    if not isinstance(told, dict):
        raise TypeError("no JSON object")
    return told
