"""Prepared statements with binary parameters: sent in one piece, answered in one round trip.

psycopg's own pipeline sends each statement as soon as it is known, so a process that is stopped at
the wrong moment has taken a lock and not sent the COMMIT. It also forgets what it has prepared at
every ROLLBACK. Here a whole exchange is handed to the socket at once, and a statement that was
prepared stays so.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from struct import Struct
from typing import Any, NamedTuple

from psycopg import Connection, OperationalError, errors, pq
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq.abc import PGconn, PGresult

# --- binary parameters ------------------------------------------------------------------------

Scalar = int | str | bytes

_NUMBER = Struct("!q")

_LENGTH = Struct("!i")

_NUMBER_AND_LENGTH = Struct("!iq")

_HEADER = Struct("!iiIii")

_NULL = _LENGTH.pack(-1)

_BYTEA, _BIGINT, _TEXT = 17, 20, 25
"""Type oids of PostgreSQL, the same on every server."""


def scalar(value: Scalar) -> bytes:
    """A bigint, a text or a bytea."""
    if isinstance(value, int):
        return _NUMBER.pack(value)
    return value.encode() if isinstance(value, str) else value


def numbers(values: Iterable[int]) -> bytes:
    """A bigint[]."""
    items = list(map(_NUMBER_AND_LENGTH.pack, repeat(_NUMBER.size), values))
    return _header(_BIGINT, len(items)) + b"".join(items)


def texts(values: Iterable[str]) -> bytes:
    return _array(_TEXT, list(map(str.encode, values)))


def blobs(values: Iterable[bytes]) -> bytes:
    """A bytea[]."""
    return _array(_BYTEA, list(values))


def nullable_numbers(values: Sequence[int | None]) -> bytes:
    """A bigint[] in which values may be NULL."""
    return _nullable_array(
        _BIGINT, [None if value is None else _NUMBER.pack(value) for value in values]
    )


def nullable_texts(values: Sequence[str | None]) -> bytes:
    """A text[] in which values may be NULL."""
    return _nullable_array(_TEXT, [None if value is None else value.encode() for value in values])


def _header(kind: int, count: int, *, with_null: bool = False) -> bytes:
    """An array header: one dimension, counted from 1."""
    return _HEADER.pack(1, with_null, kind, count, 1)


def _array(kind: int, items: Sequence[bytes]) -> bytes:
    """Each item after its length. Written for speed: every column of a batch passes here."""
    lengths = map(_LENGTH.pack, map(len, items))
    return _header(kind, len(items)) + b"".join(
        chain.from_iterable(zip(lengths, items, strict=True))
    )


def _nullable_array(kind: int, items: Sequence[bytes | None]) -> bytes:
    parts = (_NULL if item is None else _LENGTH.pack(len(item)) + item for item in items)
    return _header(kind, len(items), with_null=True) + b"".join(parts)


# --- statements -------------------------------------------------------------------------------

_BINARY = pq.Format.BINARY


class Call(NamedTuple):
    """A query by its name, and its parameters in binary."""

    query: str
    values: tuple[bytes, ...] = ()


class Pipeline:
    """A connection that one thread uses at a time."""

    def __init__(
        self, connection: Connection[Any], queries: Mapping[str, str], timeout_s: float | None
    ) -> None:
        """`timeout_s`: how many seconds an answer may take; None: any number."""
        self._connection = connection
        self._timeout_s = timeout_s
        self._pgconn = connection.pgconn
        self._loader = Transformer(connection)
        self._queries = queries
        self._prepared: set[str] = set()

    @property
    def is_closed(self) -> bool:
        """True if the connection was closed or lost."""
        return self._connection.closed

    @property
    def has_failed(self) -> bool:
        """True if a statement of the open transaction failed, so that it cannot be committed."""
        return self._pgconn.transaction_status == pq.TransactionStatus.INERROR

    def run(self, calls: Sequence[Call]) -> list[list[Any]]:
        """The rows that each call gives; the first that fails is raised, and none after it runs."""
        self._prepare(
            dict.fromkeys(call.query for call in calls if call.query not in self._prepared)
        )
        results = self._exchange([self._sender(call) for call in calls])
        _raise_first_error(results)
        return [self._rows(result) for result in results]

    def close(self) -> None:
        """Close the connection; the server undoes what was not committed."""
        self._connection.close()

    def _prepare(self, names: Collection[str]) -> None:
        if not names:
            return
        send = self._pgconn.send_prepare
        results = self._exchange(
            [partial(send, name.encode(), self._queries[name].encode()) for name in names]
        )
        # Also when one of them fails: the server keeps the others, and refuses to prepare them
        # twice.
        for name, result in zip(names, results, strict=True):
            if result.status == pq.ExecStatus.COMMAND_OK:
                self._prepared.add(name)
        _raise_first_error(results)

    def _sender(self, call: Call) -> Callable[[], None]:
        formats = [_BINARY] * len(call.values)
        return partial(
            self._pgconn.send_query_prepared, call.query.encode(), call.values, formats, _BINARY
        )

    def _exchange(self, sends: Sequence[Callable[[], None]]) -> list[PGresult]:
        try:
            self._pgconn.enter_pipeline_mode()
            results = self._connection.wait(
                _send_and_fetch(self._pgconn, sends), timeout=self._timeout_s
            )
            self._pgconn.exit_pipeline_mode()
        except BaseException:
            # Pending results would be taken for the answer to the next exchange.
            self._connection.close()
            raise
        return results

    def _rows(self, result: PGresult) -> list[Any]:
        self._loader.set_pgresult(result)
        return self._loader.load_rows(0, result.ntuples, tuple)


def _raise_first_error(results: Sequence[PGresult]) -> None:
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result)


def _send_and_fetch(pgconn: PGconn, sends: Sequence[Callable[[], None]]) -> PQGen[list[PGresult]]:
    """Send everything and a sync behind it, then collect an answer to each."""
    for send_one in sends:
        send_one()
    pgconn.pipeline_sync()
    yield from send(pgconn)
    answers: list[PGresult] = []
    while len(answers) <= len(sends):
        answer = yield from fetch_many(pgconn)
        if not answer:
            raise OperationalError("the server closed the connection")
        answers += answer
    return answers[:-1]
