"""What the engine needs from the outside: one contract, in domain verbs, for every store.

A store is the only truth. It has one writing transaction at a time per engine (`transact`) and any
number of readers beside it; every read sees only what was committed.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from msgspec import Struct

from dragoman.core.events import Status
from dragoman.core.states.lease import Lease
from dragoman.ledger.entry import Entry
from dragoman.ledger.logs import Log
from dragoman.ledger.records import HandoffCourse, HandoffRecord
from dragoman.ledger.views import Shelf
from dragoman.text.words import Wanted, Words

T = TypeVar("T")


class Clock(Protocol):
    """The hub's clock: milliseconds since the epoch."""

    def now(self) -> int:
        """The present."""
        ...


class Row(Struct, frozen=True, gc=False):
    """A stream as it is stored: its head, its folded state, its lease, its place in the indexes."""

    number: int
    name: str
    version: int
    hash: bytes
    fold: int
    state: bytes
    """Empty for a stream without entries (an actor that was never refused)."""
    lease: Lease | None = None
    shelf: Shelf = Shelf()


Columns = tuple[int, str, int, str, bytes, bytes, bytes]
"""The fields of an entry, in their order, as a database gives them."""

StreamHead = tuple[int, str, int, bytes]
"""A stream's number, name, version and hash."""


class NewEntry(Struct, frozen=True, gc=False):
    """An entry to append; the store gives it the next position."""

    stream: int
    version: int
    event: str
    line: bytes
    previous: bytes
    hash: bytes


class Answer(Struct, frozen=True, gc=False):
    """What a request was answered, kept so that its repeat is answered the same."""

    scope: int
    """The number of the stream in which the key is unique: the target's, or the actor's."""
    key: str
    fingerprint: bytes
    answer: bytes


class NewLog(Struct, frozen=True, gc=False):
    """A row of the logs to write, beside the entry of a stream at a version."""

    stream: int
    version: int
    log: Log


class ReadyKey(Struct, frozen=True, order=True, gc=False):
    """A place in a ready queue: priority first, then age."""

    rank: int
    since: int
    number: int
    name: str


class Changes(Struct):
    """Everything that one transaction writes; each table is written once."""

    entries: list[NewEntry] = []
    streams: list[Row] = []
    leases: list[tuple[int, Lease | None]] = []
    """Stream number and its lease; None ends it."""
    names: list[tuple[str, str, int]] = []
    """Name, kind, and the number of the task's stream."""
    answers: list[Answer] = []
    numbers: dict[str, int] = {}
    """Day -> the last AOF number given out."""
    listed: list[tuple[str, int]] = []
    """Lists and the streams (by number) that stand on them from now on; the place of a stream on
    every list is the position of its first entry."""
    unlisted: list[tuple[str, int]] = []
    """Lists and the streams that no longer stand on them."""
    courses: list[HandoffCourse] = []
    """How handoffs have gone on whose rows there are; written before the new ones, so that what is
    over makes room."""
    handoffs: list[HandoffRecord] = []
    """Those that are over stand before those that are under way: a task has one of these only."""
    logs: list[NewLog] = []
    """Turns and events of traces, each beside its entry."""


class Session(Protocol):
    """One open writing transaction. It reads its own start, not yet what it will write."""

    @property
    def is_fresh(self) -> bool:
        """Whether nobody else has written since this store's last transaction."""
        ...

    def streams(self, names: Sequence[str]) -> list[Row]:
        """The rows of those streams that exist, with their leases, locked against other writers."""
        ...

    def history(self, stream: str) -> list[bytes]:
        """The lines of one stream, for folding its state anew."""
        ...

    def new_stream(self) -> int:
        """A number that no stream has."""
        ...

    def named(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """(name, kind, stream) of every task that has one of these names as an alias."""
        ...

    def answered(self, keys: Sequence[tuple[int, str]]) -> list[Answer]:
        """What was answered to these keys, each a scope and a key, as far as they were."""
        ...

    def promote(self, now: int, limit: int) -> int:
        """Put at most `limit` tasks whose rest is over into their queues; how many there were."""
        ...

    def ready(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        """The queue from a place on, in order; several writers get different tasks."""
        ...

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day."""
        ...

    def logged(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        """(Key, position, digest, masked) of those turns and events that were recorded before."""
        ...

    def held(self, session: str, holder: str) -> list[str]:
        """The streams of tasks that are held in this session; if none is, by this holder."""
        ...

    def on_list(self, name: str) -> list[str]:
        """The streams that stand on this list, oldest first."""
        ...

    def write(self, changes: Changes) -> None:
        """Write all of it. Raises StoreConflict when another writer was faster, TaskOnItsWay when
        a task would have two handoffs under way."""
        ...

    @property
    def first(self) -> int:
        """The position of the first entry that was written, once it is committed; 0: of none."""
        ...


class BoardQuery(Struct, frozen=True):
    """A page of tasks, newest first."""

    status: Status | None = None
    owner: str | None = None
    before: int | None = None
    """Stream number: the page begins with the next older task."""
    limit: int = 50


class ListQuery(Struct, frozen=True):
    """A page of a list, oldest first, or newest first if `before` is given."""

    list: str
    after: int = 0
    """Position: the page begins behind it."""
    before: int | None = None
    """Position: the page begins with the next older one."""
    limit: int = 50


class Listed(Struct, frozen=True):
    """A stream and its place on a list: the position at which its first entry stands."""

    position: int
    row: Row


class KeptAnswer(Struct, frozen=True):
    """An answer, and the name of the stream in which its key is unique."""

    stream: str
    answer: Answer


class Inspection(Struct, frozen=True):
    """What a database found when it looked at what it keeps, page by page."""

    damage: tuple[str, ...] = ()
    """The first of what is wrong, in its own words."""
    is_whole: bool = True
    """Whether it has looked at all of it: in the time that it had, and if it can do so at all."""


class Frozen(Protocol):
    """A store as it was at one moment, whatever is written to it meanwhile."""

    def head(self) -> int:
        """The last position."""
        ...

    def ledger_id(self) -> str:
        """The id of the ledger."""
        ...

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Entries by position."""
        ...

    def held(self, after: int, limit: int) -> list[Row]:
        """Streams of tasks that somebody holds, by number."""
        ...

    def answers(self, after: tuple[int, str], limit: int) -> list[KeptAnswer]:
        """All that was answered, by scope and key."""
        ...


class Store(Protocol):
    """Where everything is kept. Readers may be called from any thread."""

    def transact(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a writing transaction: committed durably when this returns, or undone."""
        ...

    def head(self) -> int:
        """The last position; 0 while the ledger is empty."""
        ...

    def ledger_id(self) -> str:
        """The id that this ledger was given when it was created."""
        ...

    def secret_mark(self, mine: str, *, anew: bool = False) -> str:
        """The mark of the secret that digests here are keyed with; `mine` becomes it if there is
        none yet, or if it is to be `anew`."""
        ...

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Entries by position."""
        ...

    def columns(self, after: int, until: int, limit: int) -> Sequence[Columns]:
        """Entries by position, for whoever looks at very many."""
        ...

    def history(
        self, stream: str, after: int, limit: int, *, until: int | None = None
    ) -> list[Entry]:
        """The entries of one stream after a version, up to a position."""
        ...

    def stream(self, name: str) -> Row | None:
        """One stream."""
        ...

    def rows(self, after: int, limit: int) -> list[Row]:
        """All streams by number."""
        ...

    def heads(self, after: int, limit: int) -> Sequence[StreamHead]:
        """The heads of all streams by number, without their states."""
        ...

    def kind(self, kind: str, after: str, limit: int) -> list[Row]:
        """Streams of one kind (`agent`, for example) by name, from the one after a name on."""
        ...

    def names(self, after: tuple[str, str], limit: int) -> list[tuple[str, str, str]]:
        """All aliases as (name, kind, stream), in order."""
        ...

    def named(self, name: str) -> list[tuple[str, str]]:
        """(kind, stream) of every task that has this name as an alias."""
        ...

    def board(self, query: BoardQuery) -> list[Row]:
        """A page of tasks."""
        ...

    def counts(self) -> dict[str, int]:
        """How many tasks stand in each status."""
        ...

    def expired(self, now: int, limit: int) -> list[str]:
        """Streams of tasks whose lease has ended, the longest dead first."""
        ...

    def overdue(self, now: int, limit: int) -> list[str]:
        """Streams of which it has to be told now that they are late, the longest late first."""
        ...

    def sessions(self, session: str) -> list[str]:
        """Streams of tasks that are held in this session; none for no session."""
        ...

    def claims(self, session: str, after: int, limit: int) -> list[Entry]:
        """The claims in a session, whether it lasts or not, by position."""
        ...

    def claims_back(self, session: str, before: int, limit: int) -> list[Entry]:
        """The last claims in a session before a position, the last one first."""
        ...

    def listed(self, query: ListQuery) -> list[Listed]:
        """A page of a list."""
        ...

    def places(self, after: tuple[str, int], limit: int) -> list[tuple[str, int, str]]:
        """All places as (list, position, stream), in order."""
        ...

    def handoffs(self, after: str, limit: int) -> list[HandoffRecord]:
        """All handoffs that were offered, by id, from the one after an id on."""
        ...

    def turns(self, task: str, attempt: int, after: int, limit: int) -> list[Entry]:
        """The turns of an attempt on a task in their own order, from the one after an index on."""
        ...

    def turns_back(self, task: str, attempt: int, limit: int) -> list[Entry]:
        """The last turns of an attempt on a task, the last one first."""
        ...

    def traces(self, task: str, after: int, limit: int) -> list[Entry]:
        """The events of traces that are about a task, by position."""
        ...

    def trace(self, event_id: str) -> Entry | None:
        """The event of a trace with this id, in small letters."""
        ...

    def logs(self, after: int, until: int) -> list[tuple[int, Log]]:
        """All rows of the logs between two positions, the last one included."""
        ...

    def indexed(self) -> int:
        """The position up to which words can be searched for."""
        ...

    def index(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        """Make what stands at these positions findable, and all up to `until` known as looked at.

        Whoever indexes the same entries at the same time does no harm.
        """
        ...

    def search(self, wanted: Wanted, before: int | None, limit: int) -> list[Listed]:
        """The streams whose indexed words are as wanted, newest first."""
        ...

    def inspect(self, seconds: float | None = None) -> Inspection:
        """Let the database look for damage below rows and columns, for so long: a page that cannot
        be read, an index that has not what its table has, a value that no column may hold."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class KeptStore(Store, Protocol):
    """A store that outlives its process, and so is worth a backup."""

    def snapshot(self) -> AbstractContextManager[Frozen]:
        """The store as it is now, for as long as somebody reads; nobody who writes waits for it."""
        ...
