from slackwater.adapters.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
