"""PostgreSQL alone: what is sent as the text of an array comes back as what it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slackwater.adapters.postgres.pipeline import literal_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
INSTANTS = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - the strategy adds the zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=9))]),
)
SPANS = st.timedeltas(min_value=timedelta(days=-9999), max_value=timedelta(days=9999))
KINDS: list[tuple[str, st.SearchStrategy[Any]]] = [
    ("text", TEXTS | st.sampled_from(["NULL", "null", "", " ", "{}", '"', "\\", "\\x00", "a,b", "'"])),
    ("bytea", st.binary()),
    ("boolean", st.booleans()),
    ("integer", st.integers(-(2**31), 2**31 - 1)),
    ("bigint", st.integers(-(2**63), 2**63 - 1)),
    ("uuid", st.uuids()),
    ("interval", SPANS),
    ("timestamptz", INSTANTS),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[kind for kind, _ in KINDS])
def test_values_of_each_type_and_nothing_come_back_in_their_order(
    migrated_url: str, kind: str, values: st.SearchStrategy[Any]
) -> None:
    with psycopg.connect(migrated_url.replace("+psycopg", "")) as connection:
        connection.execute("SET timezone = 'UTC'")

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(st.lists(st.none() | values, max_size=6))
        def comes_back(sent: list[Any]) -> None:
            query: Any = f"SELECT unnest(%(sent)s::{kind}[])"
            assert [row[0] for row in connection.execute(query, {"sent": literal_of(sent)})] == sent

        comes_back()


def test_a_text_that_no_database_takes_is_refused_by_the_driver(migrated_url: str) -> None:
    with psycopg.connect(migrated_url.replace("+psycopg", "")) as connection:
        for text in ("\0", "\ud800"):
            with pytest.raises((psycopg.DataError, UnicodeEncodeError)):
                connection.execute("SELECT %(sent)s::text[]", {"sent": literal_of([text])})


def test_an_identifier_and_a_span_are_written_as_they_are_read() -> None:
    assert literal_of([UUID(int=7), None, True, 7]) == '{"00000000-0000-0000-0000-000000000007",NULL,"True","7"}'
    assert literal_of([timedelta(days=1, microseconds=1)]) == '{"86400000001 microseconds"}'
    assert literal_of([]) == "{}"
