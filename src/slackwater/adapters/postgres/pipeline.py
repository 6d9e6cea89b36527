"""Statements compiled once, and sent to the server in a pipeline: for what each job with a key or a lease pays for.

Built anew at each call, a statement costs 1 ms of processor time and a wait for the server's answer; compiled once and
piped, some 50 us and no wait of its own. Which statements there are is still said in SQLAlchemy's terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy import Column, Executable, TableValuedAlias, bindparam, cast, column, func, select
from sqlalchemy.dialects.postgresql import ARRAY, JSON
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql import Select

from slackwater.adapters.postgres.batches import plain_type
from slackwater.adapters.postgres.tables import Instant


def batch_of(columns: Sequence[Column[Any]], *, called: str = "batch") -> TableValuedAlias:
    """Return rows as a table in a statement: one array a column, of the parameter `called_column`.

    What fills them is `arrays`.
    """
    bound = [bindparam(f"{called}_{one.name}", type_=ARRAY(plain_type(one.type))) for one in columns]
    names = [column(one.name, plain_type(one.type)) for one in columns]
    return func.unnest(*bound).table_valued(*names).render_derived(name=called)


def chosen_of(columns: Sequence[Column[Any]]) -> Select[Any]:
    """Return a query of those rows, for `INSERT ... SELECT`, in the order of the first column; see `batches.chosen`."""
    batch = batch_of(columns)
    values = [cast(batch.c[one.name], JSON) if isinstance(one.type, JSON) else batch.c[one.name] for one in columns]
    return select(*values).order_by(*values[:1])


def arrays(
    columns: Sequence[Column[Any]], rows: Sequence[Sequence[Any]], *, called: str = "batch"
) -> dict[str, list[Any]]:
    """Return rows as the parameters of `batch_of`.

    Raises:
        ValueError: An instant without a zone.
    """
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    return {f"{called}_{one.name}": _checked(one, list(each)) for one, each in zip(columns, values, strict=True)}


def _checked(one: Column[Any], values: list[Any]) -> list[Any]:
    if isinstance(one.type, Instant) and any(value is not None and value.tzinfo is None for value in values):
        raise ValueError(f"an instant without a zone among {one.name}")
    return values


def literal_of(values: Sequence[Any]) -> str:
    """Return values as the text of an array; the statement says of what type.

    The driver's own way with lists is written in Python and looks at each value several times, which was nearly half of
    what these statements took of a worker's processor time.
    """
    return f"{{{','.join([_element(one) for one in values])}}}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    if isinstance(value, timedelta):
        return f'"{value // timedelta(microseconds=1)} microseconds"'
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: literal_of(value) if isinstance(value, list) else value for name, value in values.items()}


@dataclass(frozen=True)
class Statement:
    """A statement's text, for the driver, and the parameters that never change."""

    text: str
    constants: Mapping[str, Any]

    @classmethod
    def of(cls, statement: Executable, *, schema: str) -> Statement:
        """Compile a statement for the tables of a schema; one without `IN`, whose text is made at each call."""
        compiled: Any = statement.compile(  # type: ignore[attr-defined]  # each executable has it
            dialect=PGDialect_psycopg(),  # type: ignore[no-untyped-call]
            schema_translate_map={None: schema},
            render_schema_translate=True,
        )
        given = {name for name, one in compiled.binds.items() if one.required}
        constants = {name: value for name, value in compiled.params.items() if name not in given}
        return cls(str(compiled), _written(constants))


class Pipeline:
    """One connection's statements on their way; an answer is waited for only when it is read."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def send(self, statement: Statement, **values: Any) -> psycopg.Cursor[Any]:
        """Send a statement; its rows are read from what is returned."""
        cursor = psycopg.Cursor(self._connection, row_factory=namedtuple_row)
        return cursor.execute(statement.text, {**statement.constants, **_written(values)})

    def begin(self) -> None:
        """Begin a transaction; a pipeline is one by itself, until its end (PostgreSQL's manual, 34.5.1.3)."""
        if not psycopg.Pipeline.is_supported():
            self._connection.execute("BEGIN")

    def commit(self) -> None:
        """Commit, at the end of the pipeline at the latest."""
        if not psycopg.Pipeline.is_supported():
            self._connection.execute("COMMIT")


def piped(connection: psycopg.Connection[Any]) -> AbstractContextManager[Any]:
    """Have what is sent within the block go out without waiting; where the client library cannot, one by one."""
    return connection.pipeline() if psycopg.Pipeline.is_supported() else nullcontext()
