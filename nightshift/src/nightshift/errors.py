"""Nightshift's own errors: each one sentence with what, where and the remedy."""


class NightError(Exception):
    """A night cannot start or go on."""
