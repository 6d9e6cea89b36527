"""The aggregator's rate limit, judged by the books."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import httpx2

from nightshift.world.books import read_calls
from nightshift.world.kinds import Fault
from nightshift.world.testing import TOKEN, running_world

RATE, BURST, CALLS = 40, 4, 120


def test_never_more_calls_are_granted_in_any_span_than_the_limit_allows(tmp_path: Path) -> None:
    books = tmp_path / "books.sqlite"
    with (
        running_world(books, {"--calls-per-second": str(RATE), "--burst": str(BURST)}) as world,
        httpx2.Client(base_url=world.url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False) as http,
        ThreadPoolExecutor(12) as threads,
    ):
        answers = list(threads.map(lambda n: http.get(f"/accounts/{UUID(int=n)}/details"), range(CALLS)))
    statuses = [answer.status_code for answer in answers]
    calls = read_calls(books)
    granted = sorted(call.granted_at for call in calls if call.granted_at)
    assert statuses.count(200) == len(granted) >= BURST
    assert statuses.count(429) == CALLS - len(granted) > 0
    for first, start in enumerate(granted):
        for last in range(first, len(granted)):
            span_s = (granted[last] - start).total_seconds()
            assert last - first + 1 <= BURST + RATE * span_s + 1e-3
    refused = [call for call in calls if call.status == 429]
    assert all(call.fault is Fault.RATE_LIMIT and call.ask is None for call in refused)
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers if answer.status_code == 429)
