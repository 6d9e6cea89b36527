"""The way to a consent and back: authorization, the person's page at the bank, session, revocation."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from nightshift.world.bank import open_account
from nightshift.world.consents import Consent, Consents, SessionStatus
from nightshift.world.desk import Desk
from nightshift.world.shapes import Json, account_json, error_json

PERSONS_PAGE = "/authorize/"
COUNTRY = "DE"
ACCOUNTS_OF_A_PERSON = 2
"""Accounts that a person allows to see where the application names none."""


@dataclass(frozen=True, kw_only=True)
class GenericIdentification:
    """A name of an account in some scheme; here the aggregator's own id of it."""

    identification: UUID
    scheme_name: str


@dataclass(frozen=True, kw_only=True)
class AccountIdentification:
    """How an application names an account."""

    other: GenericIdentification


@dataclass(frozen=True, kw_only=True)
class Access:
    """What an application wants to see."""

    valid_until: dt.datetime
    accounts: list[AccountIdentification] | None = None
    balances: bool | None = None
    transactions: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Aspsp:
    """A bank."""

    name: str
    country: Literal["DE"]


@dataclass(frozen=True, kw_only=True)
class StartAuthorization:
    """Body of POST /auth."""

    access: Access
    aspsp: Aspsp
    state: str
    redirect_url: str
    psu_type: Literal["business", "personal"] = "business"


@dataclass(frozen=True, kw_only=True)
class AuthorizeSession:
    """Body of POST /sessions."""

    code: str


def session_routes(desk: Desk) -> APIRouter:
    """Build the routes: POST /auth, the person's page, POST, GET and DELETE of a session."""
    routes = APIRouter()
    _add_authorization(routes, desk)
    _add_persons_page(routes, desk)
    _add_sessions(routes, desk)
    return routes


async def _keep(desk: Desk, consent: Consent) -> Consent:
    await desk.books.put_consent(consent)
    desk.consents.put(consent)
    return consent


def _add_authorization(routes: APIRouter, desk: Desk) -> None:
    consents, seed = desk.consents, desk.rules.seed

    @routes.post("/auth")
    async def start(body: StartAuthorization, request: Request) -> JSONResponse:
        until = body.access.valid_until
        if until.tzinfo is None or until <= desk.clock.now():
            return _refused(422, "WRONG_REQUEST_PARAMETERS", "access.valid_until lies in the past, or has no zone")
        consent = await _keep(desk, asked_for(consents, body, at=desk.clock.now()))
        url = f"{str(request.base_url).rstrip('/')}{PERSONS_PAGE}{consent.consent_id}"
        told = {"url": url, "authorization_id": consent.consent_id, "psu_id_hash": _person(seed, consent)}
        return JSONResponse(told)

    @routes.post("/sessions")
    async def authorize(body: AuthorizeSession) -> JSONResponse:
        if (consent := consents.by_code(body.code)) is None:
            return _refused(422, "WRONG_AUTHORIZATION_CODE", "Wrong authorization code provided")
        status = consent.status(desk.clock.now())
        if status is not SessionStatus.RETURNED_FROM_BANK:
            error = "ALREADY_AUTHORIZED" if status is SessionStatus.AUTHORIZED else "EXPIRED_AUTHORIZATION_CODE"
            return _refused(422, error, "This code is used already, or its consent is over")
        consent = await _keep(desk, replace(consent, authorized_at=desk.clock.now()))
        return JSONResponse({"session_id": consent.session_id, **session_json(seed, consent)})


def _add_persons_page(routes: APIRouter, desk: Desk) -> None:
    consents = desk.consents

    @routes.get(PERSONS_PAGE + "{consent_id}")
    async def agree(consent_id: UUID) -> Response:
        if (consent := consents.find(str(consent_id))) is None:
            return _unknown("authorization")
        if consent.given_at is None:
            consent = await _keep(desk, replace(consent, given_at=desk.clock.now()))
        back = urlencode({"code": consent.code, "state": consent.state})
        return RedirectResponse(f"{consent.redirect_url}?{back}", 302)

    @routes.delete(PERSONS_PAGE + "{consent_id}")
    async def revoke(consent_id: UUID) -> Response:
        if (consent := consents.find(str(consent_id))) is None:
            return _unknown("authorization")
        await _keep(desk, replace(consent, revoked_at=consent.revoked_at or desk.clock.now()))
        return JSONResponse({"message": "OK"})


def _add_sessions(routes: APIRouter, desk: Desk) -> None:
    consents, seed = desk.consents, desk.rules.seed

    @routes.get("/sessions/{session_id}")
    async def tell(session_id: UUID) -> JSONResponse:
        if (consent := consents.by_session(str(session_id))) is None:
            return _unknown("session")
        return JSONResponse(session_state_json(seed, consent, at=desk.clock.now()))

    @routes.delete("/sessions/{session_id}")
    async def close(session_id: UUID) -> JSONResponse:
        if (consent := consents.by_session(str(session_id))) is None:
            return _unknown("session")
        await _keep(desk, replace(consent, closed_at=consent.closed_at or desk.clock.now()))
        return JSONResponse({"message": "OK"})


def asked_for(consents: Consents, body: StartAuthorization, *, at: dt.datetime) -> Consent:
    """Make the consent that an application asks for; the person has yet to give it."""
    consent_id = consents.next_id("consent")
    named = [str(one.other.identification) for one in body.access.accounts or ()]
    drawn = [consents.next_id(f"account {number}") for number in range(ACCOUNTS_OF_A_PERSON)]
    return Consent(
        consent_id=consent_id,
        code=consents.next_id("code"),
        session_id=consents.next_id("session"),
        accounts=tuple(named or drawn),
        valid_until=body.access.valid_until,
        bank=body.aspsp.name,
        psu_type=body.psu_type,
        redirect_url=body.redirect_url,
        state=body.state,
        created_at=at,
    )


def session_json(seed: int, consent: Consent) -> Json:
    """Shape of what POST /sessions answers, but the session's id."""
    return {"accounts": [account_json(open_account(seed, one)) for one in consent.accounts], **_shared_json(consent)}


def session_state_json(seed: int, consent: Consent, *, at: dt.datetime) -> Json:
    """Shape of GET /sessions/{session_id}."""
    accounts = [account_json(open_account(seed, one)) for one in consent.accounts]
    told = {
        "status": consent.status(at),
        "accounts": list(consent.accounts),
        "accounts_data": [
            {name: one[name] for name in ("uid", "identification_hash", "identification_hashes")} for one in accounts
        ],
        "psu_id_hash": _person(seed, consent),
        "created": consent.created_at.isoformat(),
        "authorized": None if consent.authorized_at is None else consent.authorized_at.isoformat(),
        "closed": None if consent.closed_at is None else consent.closed_at.isoformat(),
        **_shared_json(consent),
    }
    return {name: value for name, value in told.items() if value is not None}


def _shared_json(consent: Consent) -> Json:
    return {
        "aspsp": {"name": consent.bank, "country": COUNTRY},
        "psu_type": consent.psu_type,
        "access": {"valid_until": consent.valid_until.isoformat(), "balances": True, "transactions": True},
    }


def _person(seed: int, consent: Consent) -> str:
    return hashlib.sha256(f"{seed}:{consent.consent_id}".encode()).hexdigest()


def _unknown(what: str) -> JSONResponse:
    return _refused(404, "SESSION_DOES_NOT_EXIST", f"No {what} found matching provided id")


def _refused(status: int, error: str, message: str) -> JSONResponse:
    return JSONResponse(error_json(status, error, message=message), status)
