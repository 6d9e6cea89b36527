"""Nightshift's Celery application, with Slackwater around it.

Broker, results and store come from CELERY_BROKER_URL, CELERY_RESULT_BACKEND and SLACKWATER_STORE_URL.
"""

from __future__ import annotations

import os

from celery import Celery

from nightshift.connections import Connections
from nightshift.journal import Journal, follow
from nightshift.schedule import lanes, schedule
from nightshift.settings import NightSettings
from slackwater import Slackwater

settings = NightSettings.from_environment(os.environ)
app = Celery(
    "nightshift",
    include=[
        "nightshift.banking.tasks",
        "nightshift.documents.tasks",
        "nightshift.filings.tasks",
        "nightshift.sweepers",
    ],
)
app.conf.update(enable_utc=True, timezone="UTC", result_expires=86_400, worker_redirect_stdouts=False)
if settings.prefix:
    app.conf.result_backend_transport_options = {"global_keyprefix": settings.prefix}
    if not str(app.conf.broker_url or "").startswith("amqp"):
        app.conf.broker_transport_options = {"global_keyprefix": settings.prefix}
sw = Slackwater(
    app,
    lanes=lanes(settings),
    schedule=schedule(settings.plan, until=settings.ends_at),
    prefix=settings.prefix,
)
connections = Connections(
    settings=settings, books_url=sw.settings.store_url or "", pacer_url=str(app.conf.result_backend)
)
journal = Journal(settings.folder / "journal")
follow(app, sw, journal)
