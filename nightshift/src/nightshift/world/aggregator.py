"""The account-information aggregator: slow, limited, sometimes failing, in the shape of Enable Banking."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from nightshift.world.bank import BankAccount, closing_cents, entries_on, newest_first, open_account
from nightshift.world.consents import CONSENT_REFUSALS
from nightshift.world.desk import Desk, OpenCall
from nightshift.world.kinds import Fault
from nightshift.world.script import WorldRules
from nightshift.world.shapes import (
    Json,
    PageMark,
    account_json,
    balances_json,
    error_json,
    read_page_mark,
    transactions_json,
)
from nightshift.world.spoiling import spoil

DEFAULT_DAYS = 90
"""Days of transactions that are answered when no `date_from` is given."""

HISTORY_DAYS = 730
"""Days that the banks keep."""

Status = Literal["BOOK", "CNCL", "HOLD", "OTHR", "PDNG", "RJCT", "SCHD"]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a request for transactions is not valid: an error code of the interface, and a sentence."""

    error: str
    message: str


def aggregator_routes(desk: Desk) -> APIRouter:
    """Build the routes of the aggregator.

    Args:
        desk: State of the world.

    Returns:
        GET details, balances and transactions of an account. Every UUID is an account.
    """
    routes = APIRouter(prefix="/accounts/{account_id}")
    rules = desk.rules

    @routes.get("/details")
    async def details(account_id: UUID, request: Request) -> JSONResponse:
        account = open_account(rules.seed, str(account_id))
        return await _serve(desk, request, answer=lambda _: account_json(account))

    @routes.get("/balances")
    async def balances(account_id: UUID, request: Request) -> JSONResponse:
        account = open_account(rules.seed, str(account_id))
        return await _serve(desk, request, answer=lambda ask: balances_answer(rules, account, ask=ask))

    @routes.get("/transactions")
    async def transactions(
        account_id: UUID,
        request: Request,
        date_from: dt.date | None = None,
        date_to: dt.date | None = None,
        continuation_key: Annotated[str | None, Query()] = None,
        transaction_status: Status | None = None,
    ) -> JSONResponse:
        start = first_entry(date_from, date_to, continuation_key=continuation_key, today=rules.today)
        if continuation_key is not None and not isinstance(start, Refusal) and not desk.knows_key(continuation_key):
            start = Refusal(error="WRONG_CONTINUATION_KEY", message="This continuation key is expired")
        if isinstance(start, Refusal):
            return JSONResponse(error_json(422, start.error, message=start.message), 422)
        account, call, at = open_account(rules.seed, str(account_id)), request.state.call, start

        def page(ask: int) -> Json:
            told = transactions_answer(rules, account, start=at, ask=ask, status=transaction_status, fault=call.fault)
            if "continuation_key" in told:
                desk.remember_key(told["continuation_key"])
            return told

        return await _serve(desk, request, answer=page)

    return routes


def first_entry(
    date_from: dt.date | None, date_to: dt.date | None, *, continuation_key: str | None, today: dt.date
) -> PageMark | Refusal:
    """Decide where a page of transactions begins.

    Args:
        date_from: First booking day, or None for `DEFAULT_DAYS` before today.
        date_to: Last booking day, or None for today; needs a `date_from`.
        continuation_key: Key of the page before, or None; it overrules the dates.
        today: The world's date.

    Returns:
        The mark to begin at (its ask is None on a first page), or why the request is not valid.
    """
    if continuation_key is not None:
        mark = read_page_mark(continuation_key)
        if mark is None:
            return Refusal(error="WRONG_CONTINUATION_KEY", message="This is no continuation key of ours")
    elif date_to is not None and date_from is None:
        return Refusal(error="DATE_TO_WITHOUT_DATE_FROM", message="A date_to needs a date_from")
    else:
        start = date_from or today - dt.timedelta(days=DEFAULT_DAYS)
        mark = PageMark(start=start, end=date_to or today, offset=0, ask=None)
    return _refuse_period(mark, today) or mark


def _refuse_period(mark: PageMark, today: dt.date) -> Refusal | None:
    if mark.start > today:
        return Refusal(error="DATE_FROM_IN_FUTURE", message=f"date_from {mark.start} is after today, {today}")
    if mark.start > mark.end:
        message = f"date_from {mark.start} is after date_to {mark.end}"
        return Refusal(error="WRONG_DATE_INTERVAL", message=message)
    oldest = today - dt.timedelta(days=HISTORY_DAYS)
    if mark.start < oldest:
        message = f"date_from {mark.start}: nothing is kept from before {oldest}"
        return Refusal(error="WRONG_TRANSACTIONS_PERIOD", message=message)
    return None


def transactions_answer(  # a page is all of these
    rules: WorldRules,
    account: BankAccount,
    *,
    start: PageMark,
    ask: int,
    status: str | None,
    fault: Fault | None,
) -> Json:
    """Draw one page of transactions, newest first; all pages of a listing show the state of its first ask.

    Args:
        rules: The world's rules.
        account: Whose.
        start: Where the page begins.
        ask: How often was asked before.
        status: BOOK or PDNG for those alone, another one for none; None for all.
        fault: `repeated_page` or `endless_page` lead astray.
    """
    shown_ask = ask if start.ask is None else start.ask
    at = replace(start, ask=shown_ask)
    entries = newest_first(rules.seed, account, start=start.start, end=start.end, today=rules.today)
    shown = (one for one in entries if status in (None, "PDNG" if one.shown_from_ask > shown_ask else "BOOK"))
    if fault is Fault.REPEATED_PAGE and start.offset >= rules.page_size and start.turn == 0:
        begin = start.offset - rules.page_size
        return transactions_json(
            account, list(islice(shown, begin, start.offset)), ask=shown_ask, more=replace(at, turn=1)
        )
    end_offset = start.offset + rules.page_size
    page = list(islice(shown, start.offset, end_offset + 1))
    more = replace(at, offset=end_offset, turn=0) if len(page) > rules.page_size else None
    if fault is Fault.ENDLESS_PAGE:
        more = at
    return transactions_json(account, page[: rules.page_size], ask=shown_ask, more=more)


def balances_answer(rules: WorldRules, account: BankAccount, *, ask: int) -> Json:
    """Draw the balances: booked at yesterday's close, and with what came in today by this ask."""
    today = entries_on(rules.seed, account, day=rules.today, today=rules.today)
    today_cents = sum(entry.cents for entry in today if entry.shown_from_ask <= ask)
    return balances_json(closing_cents(rules.seed, account, today=rules.today), today_cents, today=rules.today)


async def _serve(desk: Desk, request: Request, *, answer: Callable[[int], Json]) -> JSONResponse:
    call: OpenCall = request.state.call
    if (
        code := desk.consents.refusal(call.subject, at=desk.clock.now(), required=desk.rules.consents_required)
    ) is not None:
        return _consent_refused(code)
    retry_after_s = desk.let_in(call)
    if retry_after_s is not None or call.fault is Fault.SCRIPTED_429:
        body = error_json(429, "ASPSP_RATE_LIMIT_EXCEEDED", message="Too many calls")
        return JSONResponse(
            body, 429, _retry_after(call.plan.retry_after_s if retry_after_s is None else retry_after_s)
        )
    await desk.wait_for_answer(call, request)
    if call.fault is Fault.CONSENT_ENDED:
        return _consent_refused("REVOKED_SESSION")
    if call.fault is Fault.SCRIPTED_5XX:
        status = call.plan.status
        error = "ASPSP_TIMEOUT" if status == 504 else "ASPSP_ERROR"
        body = error_json(status, error, message="The bank did not answer properly")
        return JSONResponse(body, status, _retry_after(call.plan.retry_after_s))
    good = JSONResponse(answer(call.ask))
    await spoil(desk, call, request, answer=good)
    return good


def _retry_after(seconds: int | None) -> dict[str, str] | None:
    return None if seconds is None else {"Retry-After": str(seconds)}


def _consent_refused(code: str) -> JSONResponse:
    status, message = CONSENT_REFUSALS[code]
    return JSONResponse(error_json(status, code, message=message), status)
