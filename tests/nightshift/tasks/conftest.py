"""Nightshift's own application on real servers: books, store, broker and the outside world's process."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from nightshift.books.generator import Scale, empty_books, generate
from nightshift.books.migrate import migrate
from nightshift.ground import own_database
from nightshift.world.books import Filing, read_filings
from nightshift.world.testing import CREDENTIALS, RunningWorld, running_world
from slackwater.inspection import open_messages
from slackwater.local import PostgreSQL

ACCOUNTS, RECEIPTS, RUNS = 6, 2, 3


@dataclass
class Night:
    """An application, and all that it works on.

    Attributes:
        app: Celery's application.
        sw: The Slackwater around it.
        books: Its books.
        world: The outside world.
        folder: Its folder.
        environment: What a process of its own has to read.
    """

    app: Any
    sw: Any
    books: Engine
    world: RunningWorld
    folder: Path
    environment: Mapping[str, str]

    def task(self, name: str) -> Any:
        """Return a task by its name."""
        return self.app.tasks[name]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the books."""
        with self.books.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def execute(self, *statements: str, **facts: object) -> None:
        """Change the books by hand."""
        with Session(self.books) as session, session.begin():
            for statement in statements:
                session.execute(text(statement), facts)

    def waiting(self) -> set[str]:
        """Return the ids of all jobs that wait with the broker."""
        messages = open_messages(self.app)
        try:
            return set(messages.waiting(list(self.sw.queues.values())))
        finally:
            messages.close()

    def filings(self) -> list[Filing]:
        """Return the filings in the world's books."""
        return read_filings(self.world.books)


@pytest.fixture(scope="package")
def application(
    tmp_path_factory: pytest.TempPathFactory,
    valkey_url: str,
    valkey_databases: Iterator[int],
    postgres_server: PostgreSQL,
) -> Iterator[Night]:
    """The application: it reads its environment when it is imported, and a process can import it once."""
    folder = tmp_path_factory.mktemp("night")
    broker = f"{valkey_url.rpartition('/')[0]}/{next(valkey_databases)}"
    credentials = folder / "application.json"
    CREDENTIALS.write(credentials)
    options = {"--today": f"{datetime.now(UTC):%Y-%m-%d}"}
    with (
        own_database(postgres_server.url, "tasks_of_tests") as url,
        running_world(folder / "world.sqlite", options) as world,
    ):
        environment = {
            "CELERY_BROKER_URL": broker,
            "CELERY_RESULT_BACKEND": broker,
            "SLACKWATER_STORE_URL": url,
            "NIGHTSHIFT_WORLD_URL": world.url,
            "NIGHTSHIFT_CREDENTIALS": str(credentials),
            "NIGHTSHIFT_FOLDER": str(folder),
            "NIGHTSHIFT_CALLS_PER_SECOND": "500",
        }
        with pytest.MonkeyPatch.context() as patch:  # while it is imported: other tests' applications read it too
            for name, value in environment.items():
                patch.setenv(name, value)
            from nightshift.app import app, connections, sw

        app.conf.update(broker_url=broker, result_backend=broker)
        app.finalize(auto=True)
        # Other tests' shared tasks are everybody's in one process, and in lanes that are not ours.
        for name in [name for name, task in app.tasks.items() if getattr(task, "lane", None) not in (None, *sw.lanes)]:
            del app.tasks[name]
        sw.check()
        migrate(connections.books)
        yield Night(app=app, sw=sw, books=connections.books, world=world, folder=folder, environment=environment)
        connections.books.dispose()
        sw.store.close()


@pytest.fixture
def night(application: Night) -> Night:
    """The application on fresh books, and with a store and a broker that know nothing."""
    with redis.Redis.from_url(application.app.conf.broker_url) as client:
        client.flushdb()
    application.execute("DROP SCHEMA IF EXISTS slackwater CASCADE")
    application.sw.store.migrate()
    empty_books(application.books)
    scale = Scale(tenants=2, accounts=ACCOUNTS, receipts=RECEIPTS, runs=RUNS)
    generate(application.books, scale, seed=7, now=datetime.now(UTC), folder=application.folder)
    return application
