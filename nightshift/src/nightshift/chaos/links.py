"""The links of a night's processes to their servers, each through a proxy that chaos can make faulty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy.engine import URL, make_url

from nightshift.errors import NightError
from slackwater.errors import ConfigurationError
from slackwater.testing import FaultProxy

BROKER, RESULTS, STORE = "link to the broker", "link to the results", "link to the store"
_BROKER_URL, _RESULTS_URL, _STORE_URL = "CELERY_BROKER_URL", "CELERY_RESULT_BACKEND", "SLACKWATER_STORE_URL"
_ENCRYPTED = frozenset({"amqps", "rediss"})
_SOCKET = ".s.PGSQL.{port}"
_POSTGRESQL_PORT = 5432
_OUR_PORT = 5433
_LONGEST_PATH = 103


@dataclass(frozen=True, kw_only=True)
class Links:
    """Proxies before servers.

    Attributes:
        proxies: By the link's name. Results that are kept on the broker have no link of their own.
        environment: The addresses that lead through them.
    """

    proxies: Mapping[str, FaultProxy]
    environment: Mapping[str, str]


@contextmanager
def open_links(env: Mapping[str, str], *, sockets: Path) -> Iterator[Links]:
    """Put a proxy before each server whose address is in an environment.

    Args:
        env: Of the night's processes.
        sockets: The night's folder for sockets.

    Raises:
        NightError: An address that no proxy can stand before.
    """
    broker_url, results_url = env[_BROKER_URL], env[_RESULTS_URL]
    _refuse_encrypted(broker_url)
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(FaultProxy.before(broker_url))
            shared = broker_url == results_url
            results = broker if shared else stack.enter_context(FaultProxy.before(results_url))
            store, store_url = _before_store(make_url(env[_STORE_URL]), sockets=sockets)
            stack.enter_context(store)
        except (ConfigurationError, ValueError, OSError) as error:
            raise NightError(f"--chaos: no proxy can stand before a server: {error}") from error
        yield Links(
            proxies={BROKER: broker, **({} if shared else {RESULTS: results}), STORE: store},
            environment={
                _BROKER_URL: broker.url_of(broker_url),
                _RESULTS_URL: results.url_of(results_url),
                _STORE_URL: store_url,
            },
        )


def _refuse_encrypted(broker_url: str) -> None:
    if (scheme := urlsplit(broker_url).scheme) in _ENCRYPTED:
        raise NightError(
            f"--chaos: a proxy stands before the broker, and the certificate of an {scheme}:// one names another host; "
            "give an address without TLS"
        )


def _before_store(url: URL, *, sockets: Path) -> tuple[FaultProxy, str]:
    host = url.query.get("host") or url.host or "localhost"
    port = int(str(url.query.get("port") or url.port or _POSTGRESQL_PORT))
    if not isinstance(host, str):
        raise NightError("--chaos: the store's address names several hosts; give one")
    if not host.startswith("/"):
        proxy = FaultProxy((host, port))
        plain = url.difference_update_query(["host", "port"])
        return proxy, plain.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
    # A server with a socket knows its clients by their user: on a port, every user of this machine would be taken in.
    folder = _folder_for_socket(Path(host), sockets)
    proxy = FaultProxy(str(Path(host) / _SOCKET.format(port=port)), listen=folder / _SOCKET.format(port=_OUR_PORT))
    through = url.update_query_dict({"host": str(folder), "port": str(_OUR_PORT)})
    return proxy, through.render_as_string(hide_password=False)


def _folder_for_socket(beside: Path, sockets: Path) -> Path:
    """Return a folder that this user alone can enter, whose path is short enough: the server's own, or the night's."""
    found = beside.stat()
    if found.st_mode & 0o077 == 0:
        return beside
    if len(str(sockets / _SOCKET.format(port=_OUR_PORT))) > _LONGEST_PATH:
        raise NightError(f"--chaos: the path of a socket in {sockets} is too long; pass a shorter --folder")
    return sockets
