"""Ending what a bundle waits for in vain, in the result backend: chords, chains and whoever waits learn of it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from celery import Celery, maybe_signature
from celery.app.task import Context
from celery.exceptions import ChordError
from kombu.utils import json

from slackwater.core.bundle import Bundle, Link, Member
from slackwater.errors import LostJob


@dataclass(frozen=True, kw_only=True)
class BundleEnds:
    """Ends missing members and bodies (the sweeper's `EndBundles`).

    Attributes:
        app: Whose results.
    """

    app: Celery

    def end_member(self, bundle: Bundle, member: Member, unended: Sequence[Link], *, stuck: str) -> None:
        """End a member as failed, with those jobs of its chain that have no end.

        A chord counts it, and its body fails with `ChordError` once all members have ended. What is linked to the
        member itself by `link_error` is not called: nobody has its message any more.
        """
        backend: Any = self.app.backend
        error = LostJob(f"lost: {stuck}, of {bundle.kind} {bundle.id}")
        for link in unended:
            if link.job != member.job:
                backend.mark_as_failure(link.job, error)
        backend.mark_as_failure(member.job, error, request=self._request(bundle, member))

    def end_body(self, bundle: Bundle, reason: str) -> None:
        """End a chord's body as failed, which nobody will publish; what is linked to it by `link_error` is called."""
        backend: Any = self.app.backend
        if bundle.body is None:
            return
        callback = _callback(bundle)
        try:
            # Celery looks for the error on the stack.
            raise ChordError(f"{bundle.kind} {bundle.id}: {reason}")  # noqa: TRY301
        except ChordError as error:
            if callback is None:
                backend.mark_as_failure(bundle.body.job, error)
            else:
                backend.chord_error_from_stack(maybe_signature(callback, app=self.app), error)

    def _request(self, bundle: Bundle, member: Member) -> Context:
        return Context(
            {
                "id": member.job,
                "task": member.links[-1].task,
                "group": bundle.id,
                "chord": _callback(bundle),
                "args": [],
                "kwargs": {},
                "delivery_info": {},
            }
        )


def _callback(bundle: Bundle) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = None if bundle.callback is None else json.loads(bundle.callback)
    return found
