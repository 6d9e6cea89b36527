"""The outside world: a bank aggregator and a filing gateway in a process of its own, and its books."""

from nightshift.world.books import BooksError, Call, Filing, read_calls, read_filings
from nightshift.world.bound import fan_out_bound_s, in_order_bound_s, needed_calls, observed_span_s
from nightshift.world.kinds import Fault, Outcome, PathKind

__all__ = [
    "BooksError",
    "Call",
    "Fault",
    "Filing",
    "Outcome",
    "PathKind",
    "fan_out_bound_s",
    "in_order_bound_s",
    "needed_calls",
    "observed_span_s",
    "read_calls",
    "read_filings",
]
