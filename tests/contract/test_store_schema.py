from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import make_url, text
from sqlalchemy.exc import ProgrammingError

from slackwater.adapters.postgres import PostgresStore
from slackwater.adapters.postgres.database import Database, open_database
from slackwater.adapters.postgres.schema import SCRIPTS, VERSION_TABLE, Schema
from slackwater.adapters.postgres.tables import metadata
from slackwater.core.reading import LaneReading
from slackwater.errors import ConfigurationError, SchemaOutdated

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
FOURTH_REVISION = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "0004", "0003", None, None

def upgrade() -> None:
    op.execute("CREATE TABLE of_the_fourth_version ()")
"""
MIGRATE_WHEN_TOLD = """
import sys
from slackwater.adapters.postgres import PostgresStore
store = PostgresStore(sys.argv[1], schema=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
store.migrate()
store.check()
store.close()
"""


@pytest.fixture
def schema() -> str:
    return "night"


@pytest.fixture
def database(postgres_url: str, schema: str) -> Iterator[Database]:
    made = open_database(postgres_url, schema=schema, pool_size=1, statement_timeout=timedelta(seconds=10))
    yield made
    made.engine.dispose()


@pytest.fixture
def newer_scripts(tmp_path: Path) -> Path:
    scripts = tmp_path / "100% newer"
    shutil.copytree(SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "versions" / "0004_fourth.py").write_text(FOURTH_REVISION)
    return scripts


def tables_of(database: Database) -> set[str]:
    query = text("SELECT tablename FROM pg_tables WHERE schemaname = :schema")
    with database.engine.connect() as connection:
        return set(connection.scalars(query, {"schema": database.schema}))


def test_the_versions_are_those_that_the_scripts_say(database: Database, newer_scripts: Path) -> None:
    for scripts in (SCRIPTS, newer_scripts):
        told = [script.revision for script in ScriptDirectory(str(scripts)).walk_revisions()]
        assert Schema(database, scripts=scripts).versions == told[::-1]


def test_an_empty_database_is_outdated_with_the_remedy(database: Database) -> None:
    with pytest.raises(SchemaOutdated, match=f"schema '{database.schema}'.* run `slackwater migrate`"):
        Schema(database).check()


def test_any_act_on_an_empty_database_names_the_remedy(postgres_url: str, schema: str) -> None:
    store = PostgresStore(postgres_url, schema=schema)

    with pytest.raises(SchemaOutdated, match="run `slackwater migrate`"):
        store.occurrences.open()
    store.close()


def test_migrating_makes_all_tables_in_the_schema_and_is_repeatable(database: Database) -> None:
    for _ in range(2):
        Schema(database).migrate()
        Schema(database).check()

    assert tables_of(database) == {*metadata.tables, VERSION_TABLE}


def test_the_migrations_make_the_tables_that_the_statements_expect(database: Database) -> None:
    Schema(database).migrate()
    with database.engine.connect() as connection:
        connection.execute(text(f"SET search_path TO {database.schema}"))
        options = {"compare_type": True, "version_table": VERSION_TABLE}
        bare = connection.execution_options(schema_translate_map=None)
        assert compare_metadata(MigrationContext.configure(bare, opts=options), metadata) == []


def test_older_tables_are_outdated_until_they_are_migrated(database: Database, newer_scripts: Path) -> None:
    Schema(database).migrate()
    newer = Schema(database, scripts=newer_scripts)

    with pytest.raises(SchemaOutdated, match="version 0003, older than this program's 0004; run `slackwater migrate`"):
        newer.check()
    newer.migrate()
    newer.check()
    assert "of_the_fourth_version" in tables_of(database)


def test_newer_tables_are_outdated_and_left_as_they_are(database: Database, newer_scripts: Path) -> None:
    Schema(database, scripts=newer_scripts).migrate()
    before = tables_of(database)

    for act in (Schema(database).check, Schema(database).migrate):
        with pytest.raises(SchemaOutdated, match=r"version 0004, newer than this program's 0003.*`slackwater migrate`"):
            act()
    assert tables_of(database) == before


def test_a_migration_that_fails_leaves_nothing_behind(database: Database, newer_scripts: Path) -> None:
    third = newer_scripts / "versions" / "0004_fourth.py"
    third.write_text(FOURTH_REVISION.replace("TABLE of_the_fourth_version ()", "TABLE occurrences ()"))

    with pytest.raises(ProgrammingError, match="already exists"):
        Schema(database, scripts=newer_scripts).migrate()
    assert tables_of(database) == set()


def test_processes_that_migrate_at_once_both_succeed(postgres_url: str, schema: str) -> None:
    command = [sys.executable, "-c", MIGRATE_WHEN_TOLD, postgres_url, schema]
    migrators = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for migrator in migrators:
        assert migrator.stdout is not None
        assert migrator.stdout.readline() == "ready\n"

    for migrator in migrators:
        assert migrator.stdin is not None
        migrator.stdin.write("now\n")
        migrator.stdin.flush()
    ends = [migrator.communicate(timeout=60) for migrator in migrators]

    assert [(migrator.returncode, end[1]) for migrator, end in zip(migrators, ends, strict=True)] == [(0, "")] * 2


def test_two_schemas_in_one_database_do_not_see_each_other(postgres_url: str, schema: str) -> None:
    names = [schema, f"Test-{schema}"]
    production, test = (PostgresStore(postgres_url, schema=name) for name in names)
    for store in (production, test):
        store.migrate()

    production.readings.append([LaneReading(at=NOW, lane="network")])
    test.occurrences.admit([], watermarks={"sync": NOW})

    assert test.readings.between(NOW, NOW + timedelta(1)) == []
    assert production.occurrences.watermarks() == {}
    for store in (production, test):
        store.check()
        store.close()


def test_a_user_who_may_not_make_the_schema_is_told_what_to_grant(postgres_url: str, schema: str) -> None:
    role = "guest_of_the_night"
    as_guest = make_url(postgres_url).update_query_dict({"options": f"-c role={role}"})
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        try:
            store = PostgresStore(as_guest.render_as_string(), schema=schema)
            with pytest.raises(ConfigurationError, match=f"permission denied.*grant its user schema '{schema}'"):
                store.migrate()
            store.close()
        finally:
            connection.execute(f"DROP ROLE {role}")
