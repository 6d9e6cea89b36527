"""Batches: many rows in one statement of constant text.

A statement a row costs a round trip and, committed one by one, a flush of the log each (360 rows a second where one
statement of a hundred does 54,000); a list of VALUES ends at 65,535 parameters and is planned anew for each length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Select, TableValuedAlias, cast, column, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY, JSON
from sqlalchemy.types import Text, TypeEngine


def unnested(columns: Sequence[Column[Any]], rows: Sequence[Sequence[Any]]) -> TableValuedAlias:
    """Return rows as a table in a statement: one array a column, whatever their number.

    Args:
        columns: The columns that the values are for, which give names and types; JSON arrives as text.
        rows: Values in the order of the columns.
    """
    arrays = zip(*rows, strict=True) if rows else [()] * len(columns)
    bound = [literal(list(values), ARRAY(plain_type(one.type))) for one, values in zip(columns, arrays, strict=True)]
    names = [column(one.name, plain_type(one.type)) for one in columns]
    return func.unnest(*bound).table_valued(*names).render_derived(name="batch")


def chosen(columns: Sequence[Column[Any]], rows: Sequence[Sequence[Any]]) -> Select[Any]:
    """Return a query of those rows, for `INSERT ... SELECT`, in the order of the first column.

    One order for all keeps two processes that write the same rows from waiting for each other in a circle.
    """
    batch = unnested(columns, rows)
    values = [cast(batch.c[one.name], JSON) if isinstance(one.type, JSON) else batch.c[one.name] for one in columns]
    return select(*values).order_by(*values[:1])


def plain_type(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """Return a column's type as that of a parameter: a collation belongs to a column; JSON arrives as text."""
    return Text() if isinstance(kind, JSON | Text) else kind
