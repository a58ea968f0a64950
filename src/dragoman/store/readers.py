"""What readers ask of any SQL store: the same questions, answered by each store's own queries."""

from abc import ABC, abstractmethod
from itertools import starmap
from typing import Any

from dragoman.core.errors import StoreCorrupt
from dragoman.engine.ports import Answer, Columns, KeptAnswer, Listed, ListQuery, Row, StreamHead
from dragoman.ledger.entry import Entry
from dragoman.ledger.logs import Log
from dragoman.ledger.records import HandoffRecord
from dragoman.text.words import Wanted

NO_LIMIT = 2**63 - 1
"""The highest position, and number, that a database can hold."""


class SqlReaders(ABC):
    """The reads of an SQL store; a store adds how a named query is run."""

    @abstractmethod
    def _read(self, query: str, *values: Any) -> list[Any]:
        """All rows that a named query finds."""

    @abstractmethod
    def _row(self, found: Any) -> Row:
        """The contract's row from a row of the database."""

    @abstractmethod
    def _place(self) -> str:
        """The location of the store, for messages."""

    @abstractmethod
    def _match(self, wanted: Wanted) -> str:
        """A search in the database's own query language."""

    def head(self) -> int:
        """The last position."""
        return self._read("head")[0][0]

    def ledger_id(self) -> str:
        """The id of this ledger."""
        for (ledger_id,) in self._read("ledger_id"):
            return ledger_id
        raise StoreCorrupt(
            f"{self._place()} has lost the id of its ledger; nothing was written: restore it "
            "from a backup, and keep the present data"
        )

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Entries by position."""
        end = NO_LIMIT if until is None else until
        return list(starmap(Entry, self._read("entries", after, end, limit)))

    def columns(self, after: int, until: int, limit: int) -> list[Columns]:
        """The same, as the database gives them."""
        return self._read("entries", after, until, limit)

    def history(
        self, stream: str, after: int, limit: int, *, until: int | None = None
    ) -> list[Entry]:
        """The entries of one stream."""
        end = NO_LIMIT if until is None else until
        return list(starmap(Entry, self._read("history", stream, after, end, limit)))

    def stream(self, name: str) -> Row | None:
        """One stream."""
        found = self._read("stream", name)
        return self._row(found[0]) if found else None

    def rows(self, after: int, limit: int) -> list[Row]:
        """All streams by number."""
        return list(map(self._row, self._read("rows", after, limit)))

    def heads(self, after: int, limit: int) -> list[StreamHead]:
        """The heads of all streams by number."""
        return self._read("heads", after, limit)

    def kind(self, kind: str, after: str, limit: int) -> list[Row]:
        """Streams of one kind by name."""
        # A semicolon is the character after the colon, so all names of the kind lie between.
        found = self._read("kind", f"{kind}:{after}", f"{kind};", limit)
        return list(map(self._row, found))

    def names(self, after: tuple[str, str], limit: int) -> list[tuple[str, str, str]]:
        """All aliases, in order."""
        return self._read("names", *after, limit)

    def counts(self) -> dict[str, int]:
        """The number of tasks in each status."""
        return dict(self._read("counts"))

    def expired(self, now: int, limit: int) -> list[str]:
        """Streams of tasks whose lease has expired, the longest ago first."""
        return [name for (name,) in self._read("expired", now, limit)]

    def overdue(self, now: int, limit: int) -> list[str]:
        """Streams whose deadline has passed, the longest ago first."""
        return [name for (name,) in self._read("overdue", now, limit)]

    def sessions(self, session: str) -> list[str]:
        """Streams of tasks held in this session."""
        return [name for (name,) in self._read("sessions", session)]

    def claims(self, session: str, after: int, limit: int) -> list[Entry]:
        """The claims made in a session, ended ones too, by position."""
        return list(starmap(Entry, self._read("claims", session, after, limit)))

    def claims_back(self, session: str, before: int, limit: int) -> list[Entry]:
        """The last claims in a session before a position, the last one first."""
        return list(starmap(Entry, self._read("claims_back", session, before, limit)))

    def listed(self, query: ListQuery) -> list[Listed]:
        """A page of a list."""
        if query.before is None:
            found = self._read("listed", query.list, query.after, query.limit)
        else:
            found = self._read("listed_back", query.list, query.after, query.before, query.limit)
        return list(map(self._listed, found))

    def places(self, after: tuple[str, int], limit: int) -> list[tuple[str, int, str]]:
        """All list items, in order."""
        return self._read("places", *after, limit)

    def handoffs(self, after: str, limit: int) -> list[HandoffRecord]:
        """The rows of all proposed handoffs, by id."""
        return list(starmap(HandoffRecord, self._read("handoffs", after, limit)))

    def turns(self, task: str, attempt: int, after: int, limit: int) -> list[Entry]:
        """The turns of an attempt on a task, by index."""
        return list(starmap(Entry, self._read("turns", task, attempt, after, limit)))

    def turns_back(self, task: str, attempt: int, limit: int) -> list[Entry]:
        """The last turns of an attempt on a task, the last one first."""
        return list(starmap(Entry, self._read("turns_back", task, attempt, limit)))

    def traces(self, task: str, after: int, limit: int) -> list[Entry]:
        """The trace events about a task, by position."""
        return list(starmap(Entry, self._read("traces", task, after, limit)))

    def trace(self, event_id: str) -> Entry | None:
        """The trace event with this id."""
        return next(starmap(Entry, self._read("trace", event_id)), None)

    def logs(self, after: int, until: int) -> list[tuple[int, Log]]:
        """All rows of the agent logs between two positions."""
        found = self._read("logs", after, until)
        return [(row[0], _log(row[1:])) for row in found]

    def held(self, after: int, limit: int) -> list[Row]:
        """Streams of tasks that have a lease, by number."""
        return list(map(self._row, self._read("held", after, limit)))

    def answers(self, after: tuple[int, str], limit: int) -> list[KeptAnswer]:
        """All stored answers, by scope and key."""
        found = self._read("answers", *after, limit)
        return [KeptAnswer(stream, Answer(*answer)) for stream, *answer in found]

    def indexed(self) -> int:
        """The position up to which texts are in the search index."""
        return int(next((value for (value,) in self._read("indexed")), 0))

    def search(self, wanted: Wanted, before: int | None, limit: int) -> list[Listed]:
        """The streams whose indexed text matches the query, newest first."""
        end = NO_LIMIT if before is None else before
        return list(map(self._listed, self._read("search", self._match(wanted), end, limit)))

    def _listed(self, found: Any) -> Listed:
        """A position, followed by the row of its stream."""
        return Listed(found[0], self._row(found[1:]))


def _log(found: Any) -> Log:
    *row, masked = found
    return Log(*row, masked=bool(masked))


class SqlMark(SqlReaders):
    """Fingerprint of the hub's secret; a store adds how a named query writes."""

    @abstractmethod
    def _put(self, query: str, *values: Any) -> None:
        """Run a named query that writes, outside of a writer's transaction."""

    def secret_mark(self, mine: str, *, anew: bool = False) -> str:
        """The fingerprint of the secret that digests here are keyed with."""
        if anew:
            self._put("change_secret_mark", mine)
        elif not self._read("secret_mark"):
            self._put("keep_secret_mark", mine)
        return self._read("secret_mark")[0][0]
