from concurrent.futures import ThreadPoolExecutor

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, Engine, inspect, text

from nightshift.books.migrate import migrate
from nightshift.books.models import SCHEMA, Base


def test_migrating_again_changes_nothing(unmigrated: Engine) -> None:
    migrate(unmigrated)
    tables = set(inspect(unmigrated).get_table_names(schema=SCHEMA))
    migrate(unmigrated)
    assert set(inspect(unmigrated).get_table_names(schema=SCHEMA)) == tables
    assert tables == {table.name for table in Base.metadata.sorted_tables} | {"books_version"}


def test_four_migrations_at_once_all_succeed(unmigrated: Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, [unmigrated] * 4))
    with unmigrated.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM nightshift.books_version")).all() == ["0003"]


def test_the_migrations_make_the_tables_of_the_models(migrated: Engine) -> None:
    with migrated.connect() as connection:
        options = {"include_schemas": True, "version_table": "books_version", "version_table_schema": SCHEMA}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_the_migrations_make_the_check_constraints_of_the_models(migrated: Engine) -> None:
    inspector = inspect(migrated)
    for table in Base.metadata.sorted_tables:
        made = {check["name"] for check in inspector.get_check_constraints(table.name, schema=SCHEMA)}
        wanted = {constraint.name for constraint in table.constraints if isinstance(constraint, CheckConstraint)}
        assert made == wanted, table.name


def test_books_live_in_their_own_schema_only(migrated: Engine) -> None:
    assert inspect(migrated).get_table_names(schema="public") == []
