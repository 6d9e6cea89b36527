"""Choosing the gauge for an application's broker."""

from __future__ import annotations

from datetime import timedelta

from celery import Celery

from slackwater.adapters.brokers.connection import ANSWER_WITHIN, BrokerKind, connect
from slackwater.adapters.brokers.management import Management
from slackwater.adapters.brokers.rabbitmq import RabbitMQGauge
from slackwater.adapters.brokers.valkey import ValkeyGauge
from slackwater.ports import Gauge


def open_gauge(app: Celery, *, answer_within: timedelta = ANSWER_WITHIN, management_url: str | None = None) -> Gauge:
    """Return the gauge for the broker that the application's workers read from; it connects at the first reading.

    Args:
        app: The application.
        answer_within: How long the broker may take to connect, and to answer, before it counts as unavailable.
        management_url: RabbitMQ's management interface, credentials included; None for none.

    Raises:
        ConfigurationError: A broker whose queues cannot be read.
    """
    connection = connect(app, answer_within=answer_within)
    if connection.kind is BrokerKind.VALKEY:
        return ValkeyGauge(connection)
    management = None if management_url is None else Management(management_url, answer_within=answer_within)
    return RabbitMQGauge(connection, management=management)
