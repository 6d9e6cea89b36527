"""Which brokers and backends can be read, without any that answers."""

from collections.abc import Callable

import pytest
from celery import Celery

from slackwater.adapters.brokers import open_gauge
from slackwater.adapters.brokers.rabbitmq import RabbitMQGauge, RabbitMQMessages
from slackwater.adapters.brokers.valkey import ValkeyGauge, ValkeyMessages
from slackwater.errors import ConfigurationError
from slackwater.inspection import JobStates, open_messages


def _app(broker: str | None = None, backend: str | None = None) -> Celery:
    return Celery("choice", broker=broker, backend=backend, set_as_current=False)


@pytest.mark.parametrize("scheme", ["redis", "rediss", "redis+socket", "sentinel"])
def test_whatever_speaks_to_valkey_is_read_as_valkey(scheme: str) -> None:
    app = _app(f"{scheme}:///somewhere")

    assert isinstance(open_gauge(app), ValkeyGauge)
    assert isinstance(open_messages(app), ValkeyMessages)


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "pyamqp"])
def test_whatever_speaks_amqp_is_read_as_rabbitmq(scheme: str) -> None:
    app = _app(f"{scheme}://somewhere//")

    assert isinstance(open_gauge(app), RabbitMQGauge)
    assert isinstance(open_messages(app), RabbitMQMessages)


@pytest.mark.parametrize("open_one", [open_gauge, open_messages])
@pytest.mark.parametrize("url", ["memory://", "filesystem://", "nonsense://a:secret@b"])
def test_any_other_transport_is_refused_with_those_that_will_do(open_one: Callable[[Celery], object], url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"redis://.*amqp://") as caught:
        open_one(_app(url))

    assert "secret" not in str(caught.value)


def test_a_database_that_is_no_number_is_refused_when_it_is_read() -> None:
    with pytest.raises(ConfigurationError, match="Database is int"):
        open_gauge(_app("redis://127.0.0.1:1/books")).read(["lane"])


def test_an_application_without_a_result_backend_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="result_backend"):
        JobStates(_app("memory://"))


def test_results_that_only_their_publisher_hears_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="rpc://"):
        JobStates(_app("memory://", "rpc://"))
