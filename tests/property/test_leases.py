from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from slackwater.adapters.memory import MemoryStore
from slackwater.core.admission import Admit, Ask, LeaseRule, WhenTaken
from slackwater.core.job import JobState
from slackwater.ports.delivery import Finish

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIVES_FOR = timedelta(seconds=30)
BOOTS = [UUID(int=number) for number in range(1, 4)]
POLICIES = st.sampled_from([WhenTaken.WAIT, WhenTaken.SKIP, WhenTaken.REPLACE])


class OneLease(RuleBasedStateMachine):
    """One lease, three worker processes, time, and outages."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.store = MemoryStore(now=lambda: self.now)
        self.bodies: dict[int, tuple[str, UUID]] = {}
        self.highest = 0
        self.jobs = 0
        self.renewed_at: dict[int, datetime] = {}
        self.heard_at = NOON

    @rule(boot=st.sampled_from(BOOTS), policy=POLICIES)
    def begin(self, boot: UUID, policy: WhenTaken) -> None:
        self.jobs += 1
        job = f"job-{self.jobs}"
        before = self.store.runs.lease("l")
        lease = LeaseRule(name="l", when_taken=policy, lives_for=LIVES_FOR)
        (begun,) = self.store.runs.begin([Ask(job=job, tries=0, task="t", boot=boot, redelivered=False, lease=lease)])
        if isinstance(begun.admission, Admit):
            assert begun.fence is not None
            assert begun.fence > self.highest
            assert before is None or policy is WhenTaken.REPLACE
            self.highest = begun.fence
            self.bodies[begun.fence] = (job, boot)
            self.renewed_at[begun.fence] = self.now
        else:
            assert before is not None

    @rule(boot=st.sampled_from(BOOTS))
    def renew(self, boot: UUID) -> None:
        held = self.store.runs.lease("l")
        jobs = [job for job, its in self.bodies.values() if its == boot]
        self.store.runs.renew(boot, jobs, lives_for=LIVES_FOR)
        self.heard_at = self.now
        if held is not None and held.boot == boot:
            self.renewed_at[held.fence] = self.now

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        if not self.bodies:
            return
        fence = data.draw(st.sampled_from(sorted(self.bodies)))
        held = self.store.runs.lease("l")
        job, _ = self.bodies.pop(fence)
        end = Finish(job=job, tries=0, state=JobState.DONE, ended_at=NOON, lease="l", fence=fence)
        self.store.runs.finish([end])
        after = self.store.runs.lease("l")
        assert after == (None if held is not None and held.fence == fence else held)

    @rule(boot=st.sampled_from(BOOTS))
    def die(self, boot: UUID) -> None:
        held = self.store.runs.lease("l")
        self.store.runs.lapse_all(boot)
        assert self.store.runs.lease("l") == (held if held is not None and held.boot != boot else None)

    @rule(seconds=st.sampled_from([1, 10, 14, 16, 31, 100]))
    def wait(self, seconds: int) -> None:
        held = self.store.runs.lease("l")
        self.now += timedelta(seconds=seconds)
        outage = self.now - self.heard_at > LIVES_FOR / 2
        if held is not None and (outage or self.now <= self.renewed_at[held.fence] + LIVES_FOR):
            assert self.store.runs.lease("l") == held

    @invariant()
    def only_the_latest_fence_is_good(self) -> None:
        held = self.store.runs.lease("l")
        assert held is None or held.fence == self.highest


TestOneLease = OneLease.TestCase
