"""Jobs that wait in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from slackwater.core.message import Held
from slackwater.core.under_way import Start


class HoldStore(Protocol):
    """Jobs that wait as rows. A crash at any step leaves a job held, or published again under the same id."""

    def hold(self, held: Sequence[Held]) -> None:
        """Keep jobs; one that is held already is replaced by a later try of it, and left alone otherwise.

        One that is claimed is replaced by the same try too, and its claim is void: it was published, has come back,
        and would be lost with the row that its claimer is about to remove.
        """
        ...

    def take_back(self, lost: Mapping[Start, Held]) -> Sequence[str]:
        """Keep jobs that are lost while under way, each in one step with its run, which is held from then on.

        Left out is a start that is not the latest any more, has told its end, or has a live lease again.

        Returns:
            The jobs that were taken back, by id.
        """
        ...

    def claim(self, lanes: Mapping[str, int], *, boot: UUID, now: datetime, claimed_for: timedelta) -> Sequence[Held]:
        """Claim jobs for publishing: those whose time has come and whose lease is free, oldest first.

        Oldest is what might have gone first: by `not_before`, then `held_at`. Of those that wait for one lease at
        most one is claimed: the others would find it taken.

        Args:
            lanes: At most how many, by lane.
            boot: Who claims.
            now: Run clock.
            claimed_for: After that long the claim is void, and others may claim.
        """
        ...

    def released(self, jobs: Sequence[str], *, boot: UUID) -> None:
        """Remove claimed jobs that are published."""
        ...

    def drop(self, jobs: Sequence[str]) -> Sequence[Held]:
        """Remove jobs, claimed or not; return those that there were."""
        ...

    def late(self, *, now: datetime, limit: int) -> Sequence[Held]:
        """Return jobs whose `start_by` (calendar clock) has passed, at most `limit`."""
        ...

    def find(self, jobs: Iterable[str]) -> Mapping[str, Held]:
        """Return those of the jobs that are held."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return how many are held, by lane."""
        ...
