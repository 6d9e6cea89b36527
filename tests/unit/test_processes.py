"""The processes of an application, described."""

import signal
import sys
from pathlib import Path

from slackwater import processes
from slackwater.local import Servers


def test_each_lane_has_a_worker_process_of_its_own(tmp_path: Path) -> None:
    workers = processes.workers("shop.app", ["till", "bakery"], env={"A": "1"}, logs=tmp_path)
    assert [(one.name, one.argv[1:]) for one in workers] == [
        ("worker-till", ("-m", "slackwater", "-v", "-A", "shop.app", "worker", "till")),
        ("worker-bakery", ("-m", "slackwater", "-v", "-A", "shop.app", "worker", "bakery")),
    ]
    assert {one.argv[0] for one in workers} == {sys.executable}
    assert {one.stop_signal for one in workers} == {signal.SIGTERM}
    assert workers[0].log_path == tmp_path / "worker-till.log"
    assert workers[0].env == {"A": "1"}


def test_a_result_backend_that_is_not_used_is_told() -> None:
    assert processes.unread_backend({"PATH": "/bin"}) is None
    told = processes.unread_backend({"CELERY_RESULT_BACKEND": "garbage://x"})
    assert told is not None
    assert told.startswith("CELERY_RESULT_BACKEND is not used: results are kept on the broker")


def test_the_environment_names_the_servers_where_celery_and_we_look_for_them() -> None:
    servers = Servers(broker_url="amqp://b", backend_url="redis://r", store_url="postgresql://s")
    assert processes.environment(servers, base={"KEPT": "yes"}) == {
        "KEPT": "yes",
        "CELERY_BROKER_URL": "amqp://b",
        "CELERY_RESULT_BACKEND": "redis://r",
        "SLACKWATER_STORE_URL": "postgresql://s",
        "PYTHONUNBUFFERED": "1",
    }
