"""Alembic's entry point: runs on the connection that `nightshift.books.migrate` hands over."""

from alembic import context

from nightshift.books.models import SCHEMA, Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table="books_version",
    version_table_schema=SCHEMA,
    include_schemas=True,
)
context.run_migrations()
