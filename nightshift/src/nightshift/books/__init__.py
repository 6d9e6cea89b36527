"""The books of the accounting product, in PostgreSQL."""
