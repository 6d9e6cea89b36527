"""The world's one web application: aggregator and filing gateway behind one desk, every call in the books."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from fastapi import FastAPI, Request, Response
from fastapi.datastructures import Headers
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from nightshift.tokens import AGGREGATOR, GATEWAY, Registration, why_refused
from nightshift.world.aggregator import aggregator_routes
from nightshift.world.books import BooksError
from nightshift.world.desk import CutOffError, Desk, OpenCall
from nightshift.world.gateway import gateway_routes
from nightshift.world.kinds import PathKind
from nightshift.world.sessions import PERSONS_PAGE, session_routes
from nightshift.world.shapes import error_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_ACCOUNT_PATH = re.compile(r"/accounts/([^/]+)/(details|balances|transactions)")
_SESSION_PATH = re.compile(r"/(auth|sessions|authorize)(?:/([^/]+))?")


def create_app(desk: Desk) -> ASGIApp:
    """Build the application.

    Args:
        desk: State of the world; its books must be open.

    Returns:
        An ASGI application in which no call, not even a wrong one, passes unbooked.
    """
    app = FastAPI(title="Nightshift's outside world", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(aggregator_routes(desk))
    app.include_router(session_routes(desk))
    app.include_router(gateway_routes(desk))

    async def cut_off(request: Request, error: Exception) -> Response:
        call: OpenCall = request.state.call
        if not call.is_cut_off and isinstance(error, CutOffError):
            desk.end_call(call, error.outcome)  # not waited for: if the books fail, the world ends anyway
        body = error_json(503, "ASPSP_ERROR", message="The world is closing")
        return JSONResponse(body, 503, {"Connection": "close"})

    app.add_exception_handler(RequestValidationError, _wrong_parameters)
    app.add_exception_handler(CutOffError, cut_off)
    return BookedCalls(Authenticated(app, desk.registration), desk)


class BookedCalls:
    """ASGI middleware that opens a row for each call and completes it before the first byte of the answer."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = _open_call(self._desk, scope)
        scope.setdefault("state", {})["call"] = call

        async def booked_send(message: Message) -> None:
            if message["type"] == "http.response.start" and not call.is_cut_off:
                wait = Headers(raw=message["headers"]).get("retry-after")
                await self._desk.close_call(call, message["status"], retry_after_s=None if wait is None else int(wait))
            await send(message)

        try:
            await self._app(scope, receive, booked_send)
        except BooksError as error:
            # The server is about to stop: without books nothing may be accepted.
            await JSONResponse(error_json(503, "ASPSP_ERROR", message=str(error)), 503)(scope, receive, send)


class Authenticated:
    """ASGI middleware that lets nobody pass without a token that is signed for the peer in question.

    Where a person gives or revokes a consent is a page for browsers: it has no token.
    """

    def __init__(self, app: ASGIApp, registration: Registration) -> None:
        self._app = app
        self._registration = registration

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event (ASGI)."""
        if scope["type"] != "http" or scope["path"].startswith(PERSONS_PAGE):
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("authorization", "")
        audience = GATEWAY if scope["path"].startswith("/filings") else AGGREGATOR
        now = dt.datetime.now(dt.UTC)
        why = why_refused(given.removeprefix("Bearer "), self._registration, audience=audience, at=now)
        if why is None:
            await self._app(scope, receive, send)
            return
        error = "UNAUTHORIZED_ACCESS" if given else "AUTHORIZATION_NOT_PROVIDED"
        body = error_json(401, error, message=f"A valid signed token is needed: {why}")
        await JSONResponse(body, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)


def _open_call(desk: Desk, scope: Scope) -> OpenCall:
    headers = Headers(scope=scope)
    query = scope["query_string"].decode("latin-1")
    kind, subject = _classify(scope["method"], scope["path"], query=query, headers=headers)
    return desk.open_call(kind, subject, method=scope["method"], query=query, job_id=headers.get("x-job-id"))


def _classify(method: str, path: str, *, query: str, headers: Headers) -> tuple[PathKind, str]:
    account = _ACCOUNT_PATH.fullmatch(path)
    if account and method == "GET":
        return PathKind(account[2]), _canonical_id(account[1])
    if path == "/filings" and method == "POST":
        return PathKind.FILING_SUBMIT, headers.get("idempotency-key", "")
    if path == "/filings" and method == "GET":
        return PathKind.FILING_LOOKUP, parse_qs(query).get("idempotency_key", [""])[0]
    if session := _SESSION_PATH.fullmatch(path):
        return PathKind.SESSION, session[2] or ""
    return PathKind.OTHER, ""


def _canonical_id(account_id: str) -> str:
    try:
        return str(UUID(account_id))
    except ValueError:
        return account_id  # the route will say so


async def _wrong_parameters(_: Request, error: Exception) -> Response:
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    detail = "; ".join(f"{problem['loc'][-1]}: {problem['msg']}" for problem in problems)
    return JSONResponse(
        error_json(422, "WRONG_REQUEST_PARAMETERS", message="The request is not valid", detail=detail), 422
    )
