"""The application that the balancer rests beside: seven lanes, a day's schedule, nothing due for hours."""

from datetime import UTC, datetime, timedelta

from celery import Celery

from slackwater import Entry, Lane, Schedule, Slackwater, crontab, hours

LATER = datetime.now(UTC) + timedelta(hours=6)
LANES = ["transaction_sync", "transaction_postprocess", "agent_batch", "agent_realtime", "integrations", "invoices"]

app = Celery("rest")
sw = Slackwater(
    app,
    lanes=[Lane(name, slots=4, pool="threads") for name in [*LANES, "housekeeping"]],
    schedule=Schedule(
        entries={
            f"entry_{number}": Entry(crontab(hour=LATER.hour, minute=number), expires=hours(2), task="nothing")
            for number in range(20)
        }
    ),
)


@app.task(name="nothing", lane="housekeeping")
def nothing() -> None:
    """Do nothing."""
