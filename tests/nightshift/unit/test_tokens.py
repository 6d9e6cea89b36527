"""Signed tokens: what a peer believes, and what it does not."""

import base64
import datetime as dt
import hmac
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from nightshift.errors import NightError
from nightshift.tokens import (
    AGGREGATOR,
    GATEWAY,
    LONGEST_LIFETIME,
    Credentials,
    TokenSource,
    sign,
    why_refused,
)

NOW = dt.datetime(2026, 11, 30, 1, 30, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
OURS = replace(Credentials.new(), application_id="ours")


def token(*, audience: str | tuple[str, ...] = AGGREGATOR, lifetime: dt.timedelta = HOUR) -> str:
    return sign(OURS, audience=audience, at=NOW, lifetime=lifetime)


def refusal(text: str, *, at: dt.datetime = NOW) -> str | None:
    return why_refused(text, OURS.registration, audience=AGGREGATOR, at=at)


def forged(text: str, part: int, change: dict[str, Any]) -> str:
    """Change the header (0) or the claims (1) of a token and leave its signature as it is."""
    parts = text.split(".")
    padded = parts[part] + "=" * (-len(parts[part]) % 4)
    facts = json.loads(base64.urlsafe_b64decode(padded)) | change
    parts[part] = base64.urlsafe_b64encode(json.dumps(facts).encode()).rstrip(b"=").decode()
    return ".".join(parts)


def test_a_token_has_the_three_parts_and_the_claims_of_the_interface() -> None:
    header, claims = (
        json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in token().split(".")[:2]
    )
    assert header == {"typ": "JWT", "alg": "RS256", "kid": "ours"}
    issued = int(NOW.timestamp())
    assert claims == {"iss": "nightshift", "aud": "aggregator", "iat": issued, "exp": issued + 3600}


def test_a_signature_is_checked_with_the_public_key_alone() -> None:
    """By cryptography itself: RSASSA-PKCS1-v1_5 with SHA-256 over the first two parts (RFC 7518, section 3.3)."""
    key = serialization.load_pem_public_key(OURS.registration.public_key.encode())
    assert isinstance(key, rsa.RSAPublicKey)
    text, _, signature = token().rpartition(".")
    padded = signature + "=" * (-len(signature) % 4)
    key.verify(base64.urlsafe_b64decode(padded), text.encode(), padding.PKCS1v15(), hashes.SHA256())
    assert "PRIVATE" not in OURS.registration.public_key


def test_a_token_that_is_signed_with_the_public_key_as_a_secret_is_not_believed() -> None:
    """Whoever knows the public key must not get in by calling it a shared secret."""
    text = forged(token(), 0, {"alg": "HS256"}).rpartition(".")[0]
    signature = hmac.new(OURS.registration.public_key.encode(), text.encode(), "sha256").digest()
    mine = f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    assert refusal(mine) == "it is not signed with RS256"


def test_a_good_token_is_believed_until_it_expires() -> None:
    assert refusal(token()) is None
    assert refusal(token(), at=NOW + HOUR - dt.timedelta(seconds=1)) is None
    assert refusal(token(), at=NOW + HOUR) == "it is expired"


def test_a_token_for_another_peer_is_not_believed() -> None:
    assert refusal(token(audience=GATEWAY)) == "it is not for aggregator"
    assert refusal(token(audience=(GATEWAY, AGGREGATOR))) is None


def test_a_token_of_another_key_or_application_is_not_believed() -> None:
    stranger = replace(Credentials.new(), application_id="ours")
    assert refusal(sign(stranger, audience=AGGREGATOR, at=NOW, lifetime=HOUR)) == "its signature is wrong"
    other = replace(OURS, application_id="other")
    assert refusal(sign(other, audience=AGGREGATOR, at=NOW, lifetime=HOUR)) == "its application is not known"


def test_claims_that_were_changed_after_signing_are_not_believed() -> None:
    assert refusal(forged(token(), 1, {"exp": int((NOW + 9 * HOUR).timestamp())})) == "its signature is wrong"


def test_a_token_that_names_no_algorithm_is_not_believed() -> None:
    unsigned = forged(token(), 0, {"alg": "none"})
    assert refusal(unsigned) == refusal(unsigned.rpartition(".")[0] + ".") == "it is not signed with RS256"


def test_a_token_of_more_than_a_day_or_from_the_future_is_not_believed() -> None:
    assert refusal(token(lifetime=LONGEST_LIFETIME)) is None
    assert refusal(token(lifetime=LONGEST_LIFETIME + dt.timedelta(seconds=1))) == "it is good for more than 24 hours"
    assert refusal(token(), at=NOW - dt.timedelta(minutes=2)) == "it is issued in the future"
    assert refusal(token(), at=NOW - dt.timedelta(seconds=20)) is None  # two clocks are never quite alike


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "....", "é.é.é", "e30.e30.", token() + "x" * 3 + "!"])
def test_what_is_no_token_is_refused_in_words(text: str) -> None:
    assert refusal(text) is not None


def test_a_source_keeps_its_token_and_renews_it_before_it_expires() -> None:
    now = [NOW]
    source = TokenSource(OURS, audience=AGGREGATOR, lifetime=HOUR, now=lambda: now[0])
    first = source.token()
    now[0] = NOW + dt.timedelta(minutes=53)
    assert source.token() == first
    now[0] = NOW + dt.timedelta(minutes=54)
    second = source.token()
    assert second != first
    assert refusal(second, at=NOW + dt.timedelta(minutes=113)) is None


def test_credentials_are_their_owners_alone_and_never_shown(tmp_path: Path) -> None:
    path = tmp_path / "application.json"
    path.write_text("an older one")
    path.chmod(0o644)
    made = Credentials.new()
    made.write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Credentials.read(path) == made
    assert "PRIVATE" not in repr(made)
    assert Credentials.new().private_key != made.private_key


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"application_id": "x", "private_key": "!"}'])
def test_credentials_that_cannot_be_read_are_told_in_one_line(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "application.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(NightError, match=r"credentials .*application\.json: cannot be read"):
        Credentials.read(path)
