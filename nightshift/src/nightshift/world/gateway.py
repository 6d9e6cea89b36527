"""The filing gateway: it accepts a filing once per idempotency key, and can be asked what became of one."""

from __future__ import annotations

import json

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from nightshift.world.bookkeeper import stamp
from nightshift.world.books import Filing
from nightshift.world.chance import token
from nightshift.world.desk import Desk, OpenCall
from nightshift.world.kinds import Fault
from nightshift.world.spoiling import spoil

KEY_LENGTH_LIMIT = 255
UNKNOWN_FILING = "filing_unknown"
"""Error code of a lookup that finds nothing; no other 404 carries it."""


def gateway_routes(desk: Desk) -> APIRouter:
    """Build the routes of the gateway.

    Args:
        desk: State of the world.

    Returns:
        POST /filings (submit) and GET /filings (look up by idempotency key).
    """
    routes = APIRouter(prefix="/filings")

    @routes.post("")
    async def submit(request: Request) -> JSONResponse:
        call: OpenCall = request.state.call
        body = canonical_body(await request.body())
        if not (call.subject.isascii() and 0 < len(call.subject) <= KEY_LENGTH_LIMIT):
            return _problem(400, "idempotency_key_missing", "An Idempotency-Key of 1 to 255 ASCII characters is needed")
        if body is None:
            return _problem(400, "body_invalid", "The body must be a JSON object")
        desk.let_in(call)
        if (refusal := await _scripted_refusal(desk, call, request)) is not None:
            return refusal
        await desk.wait(call, call.plan.effect_after_s)  # takes effect even if the caller has gone by then
        filing = await _accept(desk, call, body)
        await desk.wait_for_answer(call, request)
        headers = {"Idempotent-Replayed": "true"} if call.replayed else None
        answer = JSONResponse(_receipt(filing), 201, headers)
        if filing.body != body:
            answer = _problem(422, "idempotency_key_reused", "This key was used with another body")
        await spoil(desk, call, request, answer=answer)
        return answer

    @routes.get("")
    async def look_up(request: Request, idempotency_key: str) -> JSONResponse:
        call: OpenCall = request.state.call
        desk.let_in(call)
        if (refusal := await _scripted_refusal(desk, call, request)) is not None:
            return refusal
        await desk.wait_for_answer(call, request)
        filing = desk.filings.get(idempotency_key)
        answer = _problem(404, UNKNOWN_FILING, "No filing was accepted under this key")
        if filing is not None:
            answer = JSONResponse(_receipt(filing))
        await spoil(desk, call, request, answer=answer)
        return answer

    return routes


def canonical_body(raw: bytes) -> str | None:
    """Write a JSON object in one canonical way, so that equal bodies are equal text; None if it is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


async def _scripted_refusal(desk: Desk, call: OpenCall, request: Request) -> JSONResponse | None:
    """Answer a scripted 429 or 5xx; the call then takes no effect."""
    if call.fault not in (Fault.SCRIPTED_429, Fault.SCRIPTED_5XX):
        return None
    await desk.wait_for_answer(call, request)
    wait_s = call.plan.retry_after_s
    headers = None if wait_s is None else {"Retry-After": str(wait_s)}
    return _problem(call.plan.status, "try_later", "Not now", headers=headers)


async def _accept(desk: Desk, call: OpenCall, body: str) -> Filing:
    # Between looking and claiming nothing is awaited: of calls at the same moment one makes the filing.
    filing = desk.filings.get(call.subject)
    if filing is not None:
        call.replayed = filing.body == body
        return filing
    filing = Filing(
        filing_id=f"F{token(desk.rules.seed, 'filing', call.subject, digits=12)}",
        idempotency_key=call.subject,
        body=body,
        received_at=desk.clock.now(),
        call_id=call.call_id,
        job_id=call.job_id,
    )
    desk.filings[call.subject] = filing
    await desk.books.add_filing(filing)
    return filing


def _receipt(filing: Filing) -> dict[str, str]:
    return {
        "filing_id": filing.filing_id,
        "idempotency_key": filing.idempotency_key,
        "status": "accepted",
        "received_at": stamp(filing.received_at),
    }


def _problem(status: int, error: str, message: str, *, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": error, "message": message}, status, headers)
