"""The servers of a run: those whose addresses were given, and our own for the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import kombu
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from slackwater.adapters.embedded.postgres import PostgreSQL
from slackwater.adapters.embedded.supervisor import Supervisor
from slackwater.adapters.embedded.valkey import Valkey
from slackwater.errors import ConfigurationError, LocalServiceError

_ANSWERS_WITHIN_S = 5
_REDIS = frozenset({"redis", "rediss"})
_AMQP = frozenset({"amqp", "amqps", "pyamqp"})
_POSTGRESQL = frozenset({"postgresql", "postgres", "postgresql+psycopg"})
_SECRET = re.compile(r"\b(password|sslpassword)=[^&]*")


@dataclass(frozen=True, kw_only=True)
class Servers:
    """Where a run's servers are.

    Attributes:
        broker_url: The broker: Valkey, Redis or RabbitMQ.
        backend_url: Where results are kept: the broker if it is a Valkey or Redis, else a Valkey of our own.
        store_url: PostgreSQL.
    """

    broker_url: str = field(repr=False)
    backend_url: str = field(repr=False)
    store_url: str = field(repr=False)

    @classmethod
    def start(
        cls, folder: Path, supervisor: Supervisor, *, broker_url: str | None = None, store_url: str | None = None
    ) -> Servers:
        """Start what has no address, once what has one has answered.

        Args:
            folder: The run's folder, the one that the supervisor keeps its record in.
            supervisor: Whose children the servers become.
            broker_url: `redis://`, `rediss://`, `amqp://` or `amqps://`; None starts a Valkey.
            store_url: `postgresql://`; None starts a PostgreSQL.

        Raises:
            ConfigurationError: An address of another kind, or another folder.
            LocalServiceError: A given server does not answer, or one of ours did not start.
        """
        return ServerPlan(folder, supervisor, broker_url=broker_url, store_url=store_url).start()


class ServerPlan:
    """Servers to be: their addresses are known, and those that are given have answered; none of ours has started."""

    def __init__(
        self, folder: Path, supervisor: Supervisor, *, broker_url: str | None = None, store_url: str | None = None
    ) -> None:
        """Decide on the addresses; arguments and errors are those of `Servers.start`."""
        run = supervisor.folder
        if folder.resolve() != run.path:
            raise ConfigurationError(f"servers in {folder}: the supervisor's run folder is {run.path}; pass that")
        if broker_url is not None:
            _ask_broker(broker_url)
        if store_url is not None:
            _ask_store(store_url)
        shared = broker_url if broker_url is not None and _scheme(broker_url) in _REDIS else None
        self._supervisor = supervisor
        self._broker_url = broker_url
        self._backend: str | Valkey = shared or Valkey(run)
        self._store: str | PostgreSQL = store_url or PostgreSQL(run)

    def addresses(self) -> Servers:
        """Return where the servers will be."""
        backend = self._backend if isinstance(self._backend, str) else self._backend.prepare()
        store = self._store if isinstance(self._store, str) else self._store.prepare()
        return Servers(broker_url=self._broker_url or backend, backend_url=backend, store_url=store)

    def start(self) -> Servers:
        """Start ours, and return where all are."""
        for each in (self._backend, self._store):
            if not isinstance(each, str):
                each.start(self._supervisor)
        return self.addresses()

    @property
    def own(self) -> tuple[str, ...]:
        """Return the names, among the supervisor's children, of those servers that are started by this plan."""
        return tuple(each.name for each in (self._backend, self._store) if not isinstance(each, str))

    def start_again(self, name: str) -> None:
        """Start one of ours again that has ended, with what it had written, at the address that it had.

        Raises:
            LocalServiceError: It did not start, or somebody has taken its port meanwhile.
        """
        before = self.addresses()
        for each in (self._backend, self._store):
            if not isinstance(each, str) and each.name == name:
                each.start(self._supervisor)
        if self.addresses() != before:
            raise LocalServiceError(f"{name} was started again at another port, since its own was taken; start anew")


def masked(url: str) -> str:
    """Return an address without its passwords, for people."""
    # By hand, not by urllib: what was given is to be recognised, also where it is no address at all.
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    address, mark, query = rest.partition("?")
    if "@" in query and "@" not in address:  # the question mark is the password's
        address, mark, query = rest, "", ""
    credentials, at, host = address.rpartition("@")
    user, colon, password = credentials.partition(":")
    masked_query = _SECRET.sub(r"\1=***", query)
    return f"{scheme}{separator}{user}{colon}{'***' if password else ''}{at}{host}{mark}{masked_query}"


def _scheme(url: str) -> str:
    scheme, separator, _ = url.partition("://")
    return scheme.lower() if separator else ""


def _ask_broker(url: str) -> None:
    scheme = _scheme(url)
    if scheme not in _REDIS | _AMQP:
        raise ConfigurationError(_unsupported("broker", url, give="redis:// or amqp://"))
    timeouts = {"socket_connect_timeout": _ANSWERS_WITHIN_S, "socket_timeout": _ANSWERS_WITHIN_S}
    options = timeouts if scheme in _REDIS else {}
    try:
        with kombu.Connection(url, connect_timeout=_ANSWERS_WITHIN_S, transport_options=options) as connection:
            _reach(connection, url)
    except ValueError as error:
        raise ConfigurationError(f"broker {masked(url)}: {error}; correct the address") from error


def _reach(connection: kombu.Connection, url: str) -> None:
    try:
        # A Redis channel pings the server when it is opened.
        connection.connect()
        connection.default_channel  # noqa: B018
    except (*connection.connection_errors, *connection.channel_errors) as error:
        raise _silent("broker", url, error) from error


def _ask_store(url: str) -> None:
    if _scheme(url) not in _POSTGRESQL:
        raise ConfigurationError(_unsupported("store", url, give="postgresql://"))
    try:
        address = sa.make_url(url).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(address, poolclass=sa.NullPool, connect_args={"connect_timeout": _ANSWERS_WITHIN_S})
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT 1"))
    except SQLAlchemyError as error:
        raise _silent("database", url, getattr(error, "orig", None) or error) from error


def _unsupported(what: str, url: str, *, give: str) -> str:
    if scheme := _scheme(url):
        return f"{what} {masked(url)}: {scheme} is not supported; give {give}"
    return f"{what} {masked(url)!r}: no address, it has no scheme; give {give}..., or none to have one started"


def _silent(what: str, url: str, error: BaseException) -> LocalServiceError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return LocalServiceError(
        f"the {what} at {masked(url)} does not answer ({reason}); start it, or give no address to have one started"
    )
