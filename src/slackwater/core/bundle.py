"""Bundles: groups and chords of Celery (canvas; scatter and gather), and when one of them cannot complete any more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from slackwater.core.job import JobState

NAMED = 5
"""How many missing jobs a reason names."""
NOTICE = timedelta(minutes=5)
"""So long before its results may be gone a bundle counts as late: from then on that a job has none proves nothing."""


@dataclass(frozen=True)
class Link:
    """One job of a member, which is a chain of one or more.

    Attributes:
        job: Its id.
        task: Its task's name; empty where nobody saw it.
    """

    job: str
    task: str = ""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One of the jobs whose ends are waited for, with those of its chain that come before it.

    Attributes:
        links: In the order in which they run; the end of the last is the member's.
        placed: All of them go to lanes' queues, and stay unacknowledged until they have ended: so what is in no queue
            and in nobody's hands is nowhere.
    """

    links: tuple[Link, ...]
    placed: bool = True

    @property
    def job(self) -> str:
        """Return the id of the job whose end counts."""
        return self.links[-1].job


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A group, or a chord: a group with a body that runs once all members have ended.

    Attributes:
        id: The group's id.
        members: Its members.
        body: The chord's body; None for a group.
        callback: The body's signature as JSON, whose end is told through it; None for a group.
        noted_at: When it was published (run clock).
        start_by: Last instant at which any of its jobs may start for the first time (calendar clock); None for none.
        kept_until: From when on its results, or a chord's count of them, may be gone (run clock); None for never.
        blame: Why it cannot complete any more; empty while it can.
        whole: All of it was published; False while some may still be, as it is noted before its first job goes out.
        publisher: The job whose body publishes it, and does so again if it comes again; None outside of a body, and
            once it is whole.
    """

    id: str
    members: tuple[Member, ...]
    body: Member | None = None
    callback: str | None = field(default=None, repr=False)
    noted_at: datetime
    start_by: datetime | None = None
    kept_until: datetime | None = None
    blame: str = ""
    whole: bool = True
    publisher: str | None = None

    @property
    def kind(self) -> str:
        """Return `chord` or `group`."""
        return "group" if self.body is None else "chord"

    @property
    def jobs(self) -> Sequence[str]:
        """Return the ids of all its jobs."""
        all_members = self.members if self.body is None else (*self.members, self.body)
        return [link.job for member in all_members for link in member.links]


class BundleState(StrEnum):
    """What a bundle has come to."""

    OPEN = "open"
    FAILED = "failed"
    """A chord whose body never ran."""
    PARTIAL = "partial"
    """A group of which some members have no end of their own."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is known of the jobs of a bundle at one look.

    Attributes:
        states: By id, from the result backend.
        kept: Ids that the store will start again, or that are the body of a bundle which is open.
        placed: Ids that wait in the lanes' queues or are in workers' hands; None where the broker cannot tell.
        run: Run clock.
        calendar: Calendar clock.
        grace: How long after `start_by` the last endings may still be told.
    """

    states: Mapping[str, JobState]
    kept: frozenset[str] = frozenset()
    placed: frozenset[str] | None = None
    run: datetime
    calendar: datetime
    grace: timedelta

    def has_ended(self, member: Member) -> bool:
        """Tell whether the job that counts has ended."""
        state = self.states.get(member.job)
        return state is not None and state.final

    def is_gone(self, member: Member, bundle: Bundle) -> bool:
        """Tell whether nobody will ever end a member: none of its jobs is anywhere, or it is too late for them."""
        jobs = [link.job for link in member.links]
        if bundle.publisher is not None:
            jobs.append(bundle.publisher)
        if any(job in self.kept for job in jobs):
            return False
        if self.placed is not None and member.placed:
            return not any(job in self.placed for job in jobs)
        runs = any(self.states.get(link.job) in (JobState.RUNNING, JobState.HELD) for link in member.links)
        return not runs and self._is_late(bundle)

    def _is_late(self, bundle: Bundle) -> bool:
        late = bundle.start_by is not None and bundle.start_by + self.grace < self.calendar
        return late or (bundle.kept_until is not None and bundle.kept_until - NOTICE < self.run)


@dataclass(frozen=True)
class Goes:
    """It is under way."""


@dataclass(frozen=True)
class Over:
    """All that is waited for has ended; or nobody can tell any more."""


@dataclass(frozen=True)
class Missing:
    """Nobody will ever end some of its jobs.

    Attributes:
        members: Those members; empty where all have ended, and nobody runs the body.
        failed: Members that have ended otherwise than done, of a chord whose body nobody runs.
    """

    members: tuple[Member, ...]
    failed: tuple[Member, ...] = ()


Standing = Goes | Over | Missing


def judge(bundle: Bundle, seen: Seen) -> Standing:
    """Decide how a bundle stands at one look; what is missing at one look alone may be on its way."""
    if bundle.kept_until is not None and bundle.kept_until < seen.run:
        return Over()
    if bundle.body is not None and seen.has_ended(bundle.body):
        return Over()
    waited_for = [member for member in bundle.members if not seen.has_ended(member)]
    if waited_for:
        gone = tuple(member for member in waited_for if seen.is_gone(member, bundle))
        return Missing(gone) if gone else Goes()
    if bundle.body is None:
        return Over()
    if not seen.is_gone(bundle.body, bundle):
        return Goes()
    failed = tuple(member for member in bundle.members if seen.states.get(member.job) is not JobState.DONE)
    return Missing((), failed)


def reason_of(bundle: Bundle, missing: Missing, states: Mapping[str, JobState]) -> str:
    """Say in one sentence why a bundle cannot complete, with the jobs named.

    Args:
        bundle: It.
        missing: What is missing.
        states: By id, from the result backend.
    """
    if missing.members:
        named = [stuck_at(member, states) for member in missing.members]
        why = "" if bundle.whole else "its publisher broke off: "
        return f"{why}{len(named)} of {len(bundle.members)} members will never end: {_few(named)}"
    if missing.failed:
        named = [f"{_named(one.links[-1])} ({states[one.job]})" for one in missing.failed]
        return f"its body was not told that members had failed: {_few(named)}"
    body = "" if bundle.body is None else _named(bundle.body.links[0])
    return f"all members are done, and its body {body} was never published, or lost"


def unended(member: Member, states: Mapping[str, JobState]) -> Sequence[Link]:
    """Return the jobs of a member that have no end, in order."""
    return [link for link in member.links if (state := states.get(link.job)) is None or not state.final]


def stuck_at(member: Member, states: Mapping[str, JobState]) -> str:
    """Name the first job of a member that is not done: the one where it got stuck."""
    stuck = next((link for link in member.links if states.get(link.job) is not JobState.DONE), member.links[-1])
    state = states.get(stuck.job)
    return f"{_named(stuck)} ({state if state is not None and state.final else 'nobody has it'})"


def _named(link: Link) -> str:
    return f"{link.task} {link.job}".strip()


def _few(named: Collection[str]) -> str:
    listed = list(named)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more
