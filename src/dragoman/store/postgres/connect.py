"""The address of a PostgreSQL, and connections to it: each in our schema, with timeouts."""

import re
from itertools import chain
from typing import Any
from urllib.parse import unquote

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict

from dragoman.core.errors import SettingsError
from dragoman.store.postgres.errors import connect_error, store_error
from dragoman.store.postgres.pipeline import Call, Pipeline, scalar

DEFAULT_SCHEMA = "dragoman"
IDLE_TIMEOUT_MS = 30_000
"""A hub that was stopped within a transaction holds its locks no longer than this."""

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_TRANSACTION_TIMEOUT_SINCE = 170_000

_CONNECTION_DEFAULTS: dict[str, Any] = {
    "application_name": "dragoman",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    # A peer that has vanished is noticed within a minute, not after hours.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Defaults that the URL may override."""

_DURABLE_COMMITS = (
    "set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
    "WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)"
)
"""Turns on durable commits, whatever the server does for others."""

_PLANNER_SETTINGS = {
    # Every statement has its index, whatever its parameters: planning it each time is the greater
    # part of its cost, and a plan from when a table was small must not scan a large one.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}


class Address(Struct, frozen=True):
    """A server, a database in it, and our schema in that."""

    settings: dict[str, Any]
    schema: str
    idle_timeout_ms: int = IDLE_TIMEOUT_MS

    @property
    def answer_timeout_s(self) -> float | None:
        """Timeout of an answer in seconds. The server ends a transaction earlier, so a longer
        silence means that it is stopped, or the network between us is down, and TCP itself notices
        neither."""
        return self.idle_timeout_ms * 2.5 / 1_000 or None

    def __str__(self) -> str:
        """The address in messages: everything but the password."""
        host = self.settings.get("host") or self.settings.get("hostaddr") or "localhost"
        database = self.settings.get("dbname") or self.settings.get("user") or "postgres"
        port = self.settings.get("port") or 5432
        return f"PostgreSQL at {host}:{port} (database {database}, schema {self.schema})"


def parse_url(url: str) -> Address:
    """The address that a URL names; `schema` is ours, everything else is libpq's."""
    base, _, query = url.partition("?")
    options = [option for option in query.split("&") if option]
    schemas = [option for option in options if option.startswith("schema=")]
    others = [option for option in options if option not in schemas]
    schema = unquote(schemas[-1].partition("=")[2]) if schemas else DEFAULT_SCHEMA
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_") or schema == "information_schema":
        raise SettingsError(
            f"{schema!a} cannot be the schema of a store: use 1 to 63 of a-z 0-9 _, starting with "
            "a letter, and neither pg_… nor information_schema"
        )
    try:
        settings = conninfo_to_dict("?".join([base, "&".join(others)]) if others else base)
    except psycopg.Error:
        # Its message quotes parts of the URL, and the password may be among them.
        raise SettingsError(
            "the URL of the store cannot be understood: write "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME, and percent-encode what "
            "is neither letter nor digit"
        ) from None
    return Address({**_CONNECTION_DEFAULTS, **settings}, schema)


def connect(address: Address) -> psycopg.Connection[Any]:
    """A connection that works in our schema only and begins no transaction by itself."""
    try:
        connection = psycopg.connect(**address.settings, autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise connect_error(error, str(address)) from error
    try:
        _configure(connection, address)
    except psycopg.Error as error:
        connection.close()
        # No statement was sent yet, so nothing can be lost.
        raise store_error(error, str(address), is_closed=False) from error
    return connection


def _configure(connection: psycopg.Connection[Any], address: Address) -> None:
    settings = {
        **_PLANNER_SETTINGS,
        "search_path": f"{address.schema}, pg_catalog",
        "idle_in_transaction_session_timeout": str(address.idle_timeout_ms),
    }
    if connection.info.server_version >= _TRANSACTION_TIMEOUT_SINCE:
        # Also ends a transaction whose client was stopped in the middle of sending.
        settings["transaction_timeout"] = str(2 * address.idle_timeout_ms)
    parameters = [scalar(text) for text in chain.from_iterable(settings.items())]
    calls = [f"set_config(${n}::text, ${n + 1}::text, false)" for n in range(1, len(parameters), 2)]
    query = f"SELECT {', '.join([*calls, _DURABLE_COMMITS])}"
    wire = Pipeline(connection, {"set_up": query}, address.answer_timeout_s)
    wire.run([Call("set_up", tuple(parameters))])
