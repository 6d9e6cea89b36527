"""Replays: the work of a dead letter, done again as a new job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from celery import Celery

from slackwater.adapters.brokers.outlet import Outlet
from slackwater.adapters.celery.verbatim import body_of, encoded
from slackwater.core.dead_letter import DeadLetter
from slackwater.core.job import HEADER, Mark
from slackwater.core.message import Held, Message
from slackwater.errors import ConfigurationError
from slackwater.ports import Clock, Store


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What a replay does otherwise than its dead letter did; None keeps what was.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.
        start_by: Last instant of its first start (calendar clock). A letter's own is over, so None means: none.
    """

    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    start_by: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Replayer:
    """Replays dead letters. Safe to repeat: a letter has one replay, whose id follows from its own."""

    app: Celery
    store: Store
    clock: Clock

    def replay(self, job: str, edit: Edit) -> str:
        """Do a dead letter's work again, as a new job that knows whose replay it is.

        Returns:
            The new job's id.

        Raises:
            ConfigurationError: There is no such letter, or its message was not kept, or it was replayed or discarded.
        """
        letter = self.store.dead_letters.get(job)
        if letter is None:
            raise ConfigurationError(f"job {job}: there is no dead letter of it; see slackwater dead list")
        if letter.replayed_as is not None:
            raise ConfigurationError(f"job {job}: it was replayed already, as {letter.replayed_as}")
        if letter.message is None:
            raise ConfigurationError(
                f"job {job}: its message is not kept (discarded, or one of too many of its kind); publish it anew"
            )
        message = self._message(letter, letter.message, edit)
        if letter.lane is None:
            self._mark(letter, message)
            outlet = Outlet(self.app)
            try:
                outlet.publish([message])
            finally:
                outlet.close()
        else:
            # A row first: a crash before the letter is marked leaves a replay that the next one repeats under one id.
            self.store.holds.hold([self._held(message, letter.lane, edit)])
            self._mark(letter, message)
        return message.job

    def _mark(self, letter: DeadLetter, message: Message) -> None:
        if not self.store.dead_letters.mark_replayed(letter.job, as_job=message.job):
            raise ConfigurationError(f"job {letter.job}: it was replayed or discarded just now")

    def _held(self, message: Message, lane: str, edit: Edit) -> Held:
        now = self.clock.run()
        return Held(
            message=message, lane=lane, tries=0, not_before=now, start_by=edit.start_by, reason="replay", held_at=now
        )

    def _message(self, letter: DeadLetter, was: Message, edit: Edit) -> Message:
        job = str(uuid5(NAMESPACE_OID, f"replay:{letter.job}"))
        mark = Mark.from_header(was.headers.get(HEADER)) or Mark(published_at=self.clock.run(), lane=letter.lane)
        new = replace(
            mark,
            published_at=self.clock.run(),
            start_by=edit.start_by,
            occurrence=None,
            elastic=False,
            released=True,
            replay_of=letter.job,
        )
        args, kwargs, embed = body_of(was, accept=self.app.conf.accept_content)
        body = (args if edit.args is None else list(edit.args), kwargs if edit.kwargs is None else edit.kwargs, embed)
        headers = {**was.headers, HEADER: new.to_header(), "id": job, "retries": 0, "eta": None, "expires": None}
        if headers.get("root_id") == letter.job:
            headers["root_id"] = job
        headers |= {"argsrepr": repr(body[0]), "kwargsrepr": repr(body[1])}
        return replace(
            was,
            job=job,
            headers=headers,
            body=encoded(body, like=was),
            properties={**was.properties, "correlation_id": job},
        )
