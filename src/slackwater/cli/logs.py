"""Logs of our processes: one line an event, on standard error."""

from __future__ import annotations

import logging
import sys

import structlog


def configure_logs(*, verbose: bool) -> None:
    """Send our events to standard error, from warnings on; from information on if verbose."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO if verbose else logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
