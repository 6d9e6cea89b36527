"""An application whose entry never expires."""

from slackwater import Entry, every, hours

entry = Entry(every(hours(1)))  # type: ignore[call-arg]
