"""What a Django application commits its own work with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import django
import django.conf
from django import db
from django.db import transaction
from psycopg.conninfo import conninfo_to_dict
from tests.contract.callers import driver_url, insert


class DjangoCaller:
    """Django's own `connection` and `atomic`."""

    def __init__(self) -> None:
        self.fenceable: Any = db.connection

    def transaction(self) -> AbstractContextManager[Any]:
        begun: AbstractContextManager[Any] = transaction.atomic()
        return begun

    inner = transaction

    def write(self, table: str, *values: Any) -> None:
        with db.connection.cursor() as cursor:
            cursor.execute(insert(table, values), values)


class DjangoCursorCaller(DjangoCaller):
    """A cursor of Django's, as `with connection.cursor() as cursor` gives one."""

    def __init__(self) -> None:
        self.fenceable = db.connection.cursor()


@contextmanager
def django_at(url: str) -> Iterator[None]:
    """Make Django's default connection lead to a database."""
    if not django.conf.settings.configured:
        databases = {"default": {"ENGINE": "django.db.backends.postgresql"}}
        django.conf.settings.configure(DATABASES=databases, USE_TZ=True, LOGGING_CONFIG=None)
        django.setup()
    parts = conninfo_to_dict(driver_url(url))
    db.connections["default"].close()
    del db.connections["default"]
    names = {"dbname": "NAME", "host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    db.connections.databases["default"].update({theirs: parts.get(name, "") for name, theirs in names.items()})
    try:
        yield
    finally:
        db.connection.close()
