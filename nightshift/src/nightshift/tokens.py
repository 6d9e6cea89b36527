"""Signed tokens (JSON Web Token, RFC 7519): an application signs one, a peer checks it.

The signature is RSA with SHA-256 (RS256): the application signs with its private key, a peer knows the public one. The
header names the application (`kid`), the claims say by whom and for whom it is, since when and until when.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.types import Options

from nightshift.errors import NightError

ISSUER = "nightshift"
AGGREGATOR, GATEWAY = "aggregator", "filing-gateway"
"""Audiences: a token for the one does not open the other."""
LONGEST_LIFETIME = dt.timedelta(hours=24)
USUAL_LIFETIME = dt.timedelta(hours=1)
CLOCK_LEEWAY = dt.timedelta(seconds=30)
"""How far two machines' clocks may be apart."""
_ALGORITHM = "RS256"
_KEY_BITS, _EXPONENT = 2048, 65537
_BY_OUR_CLOCK: Options = {
    "verify_aud": False,
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
}
"""What PyJWT would check by its own clock and rules: we check it by the peer's."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """What a peer knows of an application: its id, and its public key (PEM)."""

    application_id: str
    public_key: str

    def __post_init__(self) -> None:
        key = serialization.load_pem_public_key(self.public_key.encode())
        if not isinstance(key, rsa.RSAPublicKey):
            raise TypeError("the key is no RSA key")

    @classmethod
    def read(cls, path: Path) -> Registration:
        """Read a file of `write`.

        Raises:
            NightError: It is not there, or holds no registration.
        """
        return _read(cls, path, what="registration")

    def write(self, path: Path) -> None:
        """Write it into a file.

        Raises:
            OSError: It cannot be written.
        """
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What an application has for its peers: its id, and the private key (PEM) that it signs with."""

    application_id: str
    private_key: str = field(repr=False)

    def __post_init__(self) -> None:
        self._key()

    @classmethod
    def new(cls) -> Credentials:
        """Draw credentials that nobody else has."""
        key = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_KEY_BITS)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return cls(application_id=str(uuid4()), private_key=pem.decode())

    @classmethod
    def read(cls, path: Path) -> Credentials:
        """Read a file of `write`.

        Raises:
            NightError: It is not there, or holds no credentials.
        """
        return _read(cls, path, what="credentials")

    def write(self, path: Path) -> None:
        """Write them into a new file that its owner alone can read (mode 0600); an older one is replaced.

        Raises:
            OSError: It cannot be written.
        """
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)

    @property
    def registration(self) -> Registration:
        """Return what peers may know."""
        pem = (
            self._key()
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return Registration(application_id=self.application_id, public_key=pem.decode())

    def _key(self) -> rsa.RSAPrivateKey:
        key = serialization.load_pem_private_key(self.private_key.encode(), password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TypeError("the key is no RSA key")
        return key


Kept = TypeVar("Kept", Registration, Credentials)


def _read(kind: type[Kept], path: Path, *, what: str) -> Kept:
    try:
        return kind(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, AttributeError, UnsupportedAlgorithm) as error:
        raise NightError(f"{what} {path}: cannot be read ({error}); name a file that a night has made") from error


def sign(credentials: Credentials, *, audience: str | tuple[str, ...], at: dt.datetime, lifetime: dt.timedelta) -> str:
    """Make a token.

    Args:
        credentials: Whose it is.
        audience: Which peer, or peers, it is for.
        at: Now (aware).
        lifetime: How long it is good for; a peer refuses more than `LONGEST_LIFETIME`.
    """
    issued = int(at.timestamp())
    claims = {
        "iss": ISSUER,
        "aud": list(audience) if isinstance(audience, tuple) else audience,
        "iat": issued,
        "exp": issued + int(lifetime.total_seconds()),
    }
    return jwt.encode(
        claims, credentials.private_key, algorithm=_ALGORITHM, headers={"kid": credentials.application_id}
    )


def why_refused(token: str, registration: Registration, *, audience: str, at: dt.datetime) -> str | None:
    """Check a token: its signature first, so that nothing unsigned is believed, then its claims.

    Args:
        token: As it was sent.
        registration: Of the application that the peer knows.
        audience: The peer's own name.
        at: Now (aware), by the peer's clock.

    Returns:
        None if it is good, or in words why it is not.
    """
    try:
        header = jwt.get_unverified_header(token)
        if header.get("alg") != _ALGORITHM:  # whoever signs does not choose how the peer checks ("alg": "none")
            return f"it is not signed with {_ALGORITHM}"
        if header.get("kid") != registration.application_id:
            return "its application is not known"
        claims = jwt.decode(token, registration.public_key, algorithms=[_ALGORITHM], options=_BY_OUR_CLOCK)
    except jwt.InvalidSignatureError:
        return "its signature is wrong"
    except jwt.InvalidTokenError:
        return "it is no signed token"
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
