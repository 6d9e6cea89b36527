"""Brings the books' tables to the newest version (alembic, without an ini file)."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from nightshift.books.models import SCHEMA

_LOCK = 0x6E69676874  # "night": two migrations of one database wait for each other
_SCRIPTS = Path(__file__).parent / "migrations"


def migrate(engine: Engine) -> None:
    """Create or upgrade the schema `nightshift`, in one transaction.

    Safe to repeat, and for several processes at once: a transaction's advisory lock lets one through, the
    others then find nothing to do. A failure leaves the database as it was.
    """
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        command.upgrade(_config(connection), "head")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
