"""Keeping a caller from the answer that it was about to get: the part of the script that happens on the wire."""

from __future__ import annotations

import asyncio
import os
from typing import NoReturn

from fastapi import Request
from fastapi.responses import Response

from nightshift.world.desk import CutOffError, Desk, OpenCall
from nightshift.world.kinds import DIED_EXIT_CODE, Fault, Outcome


async def spoil(desk: Desk, call: OpenCall, request: Request, *, answer: Response) -> None:
    """Let a call end without its answer, if the script says so. The books know it before the caller does.

    Args:
        desk: State of the world.
        call: The call, carried out.
        request: Its request.
        answer: What it would get.

    Raises:
        CutOffError: It gets no whole answer.
    """
    if call.fault is Fault.HANG:
        await desk.wait_until_left(request)
    if call.fault is Fault.LOST_ANSWER:
        await asyncio.wrap_future(desk.end_call(call, Outcome.NO_ANSWER))
        await _hang_up(desk, request, b"")
    if call.fault is Fault.TRUNCATED:
        await desk.close_call(call, answer.status_code, outcome=Outcome.TRUNCATED)
        call.is_cut_off = True
        await _hang_up(desk, request, _half(answer))
    if call.fault is Fault.DEATH:
        await asyncio.wrap_future(desk.end_call(call, Outcome.DIED))
        os._exit(DIED_EXIT_CODE)  # as kill -9 would: no farewell to anybody


async def _hang_up(desk: Desk, request: Request, last: bytes) -> NoReturn:
    """Send some bytes past the server, which would see that they are no whole answer, and close the connection."""
    if (transport := desk.transport_of(request)) is not None:
        transport.write(last)
        transport.close()
        while not await request.is_disconnected():  # or the server would answer on a connection that is closing
            await asyncio.sleep(0.001)
    raise CutOffError(Outcome.NO_ANSWER)


def _half(answer: Response) -> bytes:
    body = bytes(answer.body)
    head = f"HTTP/1.1 {answer.status_code} Cut\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body[: len(body) // 2]
