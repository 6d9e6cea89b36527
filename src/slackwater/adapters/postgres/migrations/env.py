"""Alembic's entry point: runs on the connection and in the transaction that the store hands over."""

from alembic import context

from slackwater.adapters.postgres.schema import VERSION_TABLE
from slackwater.adapters.postgres.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    version_table_schema=context.config.attributes["schema"],
)
context.run_migrations()
