"""Contracts of what the engine needs from outside: clock, store, artifact store and runners.

A store is the only truth, and speaks domain verbs. It has one writing transaction at a time per
engine (`transact`) and any number of readers beside it; every read sees only what was committed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Literal, Protocol, TypeVar

from msgspec import Struct

from dragoman.core.attempt_state import Lease
from dragoman.core.base import Status
from dragoman.ledger.entry import Entry
from dragoman.ledger.stream_state import HandoffRow, HandoffUpdate, IndexRow, LogRow
from dragoman.text.search_terms import SearchQuery, Words

# --- clock ------------------------------------------------------------------------------------


class Clock(Protocol):
    """The hub's clock: milliseconds since the epoch."""

    def now(self) -> int:
        """The current time."""
        ...


# --- rows of a store --------------------------------------------------------------------------


class StreamRow(Struct, frozen=True, gc=False):
    """A stream as it is stored: its head, its folded state, its lease, its index row."""

    number: int
    name: str
    version: int
    hash: bytes
    fold_version: int
    state: bytes
    """Empty for a stream without entries (an actor that was never refused)."""
    lease: Lease | None = None
    index: IndexRow = IndexRow()


EntryColumns = tuple[int, str, int, str, bytes, bytes, bytes]
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


class IdempotencyRecord(Struct, frozen=True, gc=False):
    """The stored answer to a request, so that a repeat gets the same one."""

    scope: int
    """The number of the stream in which the key is unique: the target's, or the actor's."""
    key: str
    fingerprint: bytes
    answer: bytes


class NewLogRow(Struct, frozen=True, gc=False):
    """A row of the agent logs to write, beside the entry of a stream at a version."""

    stream: int
    version: int
    row: LogRow


class ReadyKey(Struct, frozen=True, order=True, gc=False):
    """A position in a ready queue: priority first, then age."""

    rank: int
    since: int
    number: int
    name: str


class Changes(Struct):
    """Everything that one transaction writes; each table is written once."""

    entries: list[NewEntry] = []
    streams: list[StreamRow] = []
    leases: list[tuple[int, Lease | None]] = []
    """Stream number and its lease; None ends it."""
    aliases: list[tuple[str, str, int]] = []
    """Name, kind, and the number of the task's stream."""
    answers: list[IdempotencyRecord] = []
    daily_numbers: dict[str, int] = {}
    """Day -> the last AOF number given out."""
    list_additions: list[tuple[str, int]] = []
    """Lists and the streams (by number) to add to them; the position of a stream on every list is
    that of its first entry."""
    list_removals: list[tuple[str, int]] = []
    """Lists and the streams to remove from them."""
    handoff_updates: list[HandoffUpdate] = []
    """Updates of handoffs that have a row; written before the new ones, so that finished handoffs
    make room."""
    new_handoffs: list[HandoffRow] = []
    """Finished ones before active ones: a task has one active handoff at most."""
    logs: list[NewLogRow] = []
    """Turns and events of traces, each beside its entry."""


# --- a writing transaction --------------------------------------------------------------------


class Transaction(Protocol):
    """One open writing transaction. It reads the state at its start, not yet what it will write."""

    @property
    def is_fresh(self) -> bool:
        """True if nobody else has written since this store's last transaction."""
        ...

    def streams(self, names: Sequence[str]) -> list[StreamRow]:
        """The rows of those streams that exist, with their leases, locked against other writers."""
        ...

    def stream_lines(self, stream: str) -> list[bytes]:
        """The lines of one stream, for replaying its state."""
        ...

    def new_stream_number(self) -> int:
        """A stream number that is not in use."""
        ...

    def find_aliases(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """(name, kind, stream) of every task that has one of these names as an alias."""
        ...

    def find_answers(self, keys: Sequence[tuple[int, str]]) -> list[IdempotencyRecord]:
        """The stored answers for these keys, each a scope and a key."""
        ...

    def promote_due(self, now: int, limit: int) -> int:
        """Put at most `limit` tasks whose backoff is over into their queue; return their number."""
        ...

    def ready_page(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        """A page of the queue, in order; several writers get different tasks."""
        ...

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day."""
        ...

    def find_log_rows(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        """(Key, position, digest, masked) of those turns and events that are recorded already."""
        ...

    def streams_held(self, session: str, holder: str) -> list[str]:
        """The streams of tasks held in this session; if there is none, of those held by this
        holder."""
        ...

    def list_members(self, name: str) -> list[str]:
        """The streams on this list, oldest first."""
        ...

    def write(self, changes: Changes) -> None:
        """Write all changes. Raises StoreConflict when another writer was faster,
        ActiveHandoffConflict when a task would have two active handoffs."""
        ...

    @property
    def first_position(self) -> int:
        """The position of the first entry that was written, after the commit; 0: none was."""
        ...


# --- reads ------------------------------------------------------------------------------------


class TaskQuery(Struct, frozen=True):
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
    """Position: the page begins after it."""
    before: int | None = None
    """Position: the page begins with the next older one."""
    limit: int = 50


class ListItem(Struct, frozen=True):
    """A stream and its position on a list, which is that of its first entry."""

    position: int
    row: StreamRow


class NamedIdempotencyRecord(Struct, frozen=True):
    """A stored answer, and the name of the stream in which its key is unique."""

    stream: str
    record: IdempotencyRecord


class IntegrityReport(Struct, frozen=True):
    """The result of a database's own integrity check, page by page."""

    damage: tuple[str, ...] = ()
    """The first problems found, in the database's words."""
    is_complete: bool = True
    """False if part of it was not checked, for lack of time or because the database cannot."""


class StoreSnapshot(Protocol):
    """A consistent view of a store at one moment, whatever is written to it meanwhile."""

    def head(self) -> int:
        """The last position."""
        ...

    def ledger_id(self) -> str:
        """The id of the ledger."""
        ...

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Entries by position."""
        ...

    def held_streams(self, after: int, limit: int) -> list[StreamRow]:
        """Streams of tasks that have a lease, by number."""
        ...

    def answers(self, after: tuple[int, str], limit: int) -> list[NamedIdempotencyRecord]:
        """All stored answers, by scope and key."""
        ...


# --- the store --------------------------------------------------------------------------------

T = TypeVar("T")


class Store(Protocol):
    """The contract of every store. Readers may be called from any thread."""

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a writing transaction: committed durably when this returns, or undone."""
        ...

    def head(self) -> int:
        """The last position; 0 while the ledger is empty."""
        ...

    def ledger_id(self) -> str:
        """The id that this ledger was given when it was created."""
        ...

    def secret_fingerprint(self, own: str, *, overwrite: bool = False) -> str:
        """The fingerprint of the secret that digests here are keyed with; `own` is stored if there
        is none yet, or to `overwrite` it."""
        ...

    def issued_checkpoints(self) -> Mapping[str, str]:
        """File of signed checkpoints, by the digest of its first line -> how far it had come."""
        ...

    def keep_issued_checkpoints(self, file: str, extent: str) -> None:
        """Keep how far a file of signed checkpoints has come."""
        ...

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Entries by position."""
        ...

    def entry_columns(self, after: int, until: int, limit: int) -> Sequence[EntryColumns]:
        """Entries by position, as rows of the database, for bulk readers."""
        ...

    def history(
        self, stream: str, after: int, limit: int, *, until: int | None = None
    ) -> list[Entry]:
        """The entries of one stream after a version, up to a position."""
        ...

    def stream(self, name: str) -> StreamRow | None:
        """One stream."""
        ...

    def rows(self, after: int, limit: int) -> list[StreamRow]:
        """All streams by number."""
        ...

    def heads(self, after: int, limit: int) -> Sequence[StreamHead]:
        """The heads of all streams by number, without their states."""
        ...

    def streams_of_kind(self, kind: str, after: str, limit: int) -> list[StreamRow]:
        """Streams of one kind (`agent`, for example) by name, after a given name."""
        ...

    def aliases(self, after: tuple[str, str], limit: int) -> list[tuple[str, str, str]]:
        """All aliases as (name, kind, stream), in order."""
        ...

    def find_aliases(self, name: str) -> list[tuple[str, str]]:
        """(kind, stream) of every task that has this name as an alias."""
        ...

    def task_page(self, query: TaskQuery) -> list[StreamRow]:
        """A page of tasks."""
        ...

    def status_counts(self) -> dict[str, int]:
        """The number of tasks in each status."""
        ...

    def queue_counts(self) -> dict[str, int]:
        """The number of tasks in each ready queue that has some; "" is everyone's."""
        ...

    def expired_leases(self, now: int, limit: int) -> list[str]:
        """Streams of tasks whose lease has expired, the longest ago first."""
        ...

    def overdue_streams(self, now: int, limit: int) -> list[str]:
        """Streams whose deadline has passed and is not escalated yet, the longest ago first."""
        ...

    def streams_in_session(self, session: str) -> list[str]:
        """Streams of tasks held in this session; none for the empty session."""
        ...

    def claims(self, session: str, after: int, limit: int) -> list[Entry]:
        """The claims made in a session, ended ones too, by position."""
        ...

    def last_claims(self, session: str, before: int, limit: int) -> list[Entry]:
        """The last claims in a session before a position, the last one first."""
        ...

    def list_page(self, query: ListQuery) -> list[ListItem]:
        """A page of a list."""
        ...

    def list_items(self, after: tuple[str, int], limit: int) -> list[tuple[str, int, str]]:
        """All list items as (list, position, stream), in order."""
        ...

    def handoffs(self, after: str, limit: int) -> list[HandoffRow]:
        """The rows of all proposed handoffs, by id, after a given id."""
        ...

    def turns(self, task: str, attempt: int, after: int, limit: int) -> list[Entry]:
        """The turns of an attempt on a task by index, after a given index."""
        ...

    def last_turns(self, task: str, attempt: int, limit: int) -> list[Entry]:
        """The last turns of an attempt on a task, the last one first."""
        ...

    def trace_events(self, task: str, after: int, limit: int) -> list[Entry]:
        """The trace events about a task, by position."""
        ...

    def trace_event(self, event_id: str) -> Entry | None:
        """The trace event with this id, in lower case."""
        ...

    def log_rows(self, after: int, until: int) -> list[tuple[int, LogRow]]:
        """All rows of the agent logs between two positions, the last one included."""
        ...

    def indexed_position(self) -> int:
        """The position up to which texts are in the search index."""
        ...

    def index_texts(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        """Add the texts at these positions to the search index, which is then complete up to
        `until`.

        Indexing the same entries twice at the same time does no harm.
        """
        ...

    def search(self, query: SearchQuery, before: int | None, limit: int) -> list[ListItem]:
        """The streams whose indexed text matches the query, newest first."""
        ...

    def inspect(self, seconds: float | None = None) -> IntegrityReport:
        """Have the database check its integrity below rows and columns, for so many seconds:
        unreadable pages, indexes that differ from their tables, values of a wrong type."""
        ...

    def inspect_schema(self) -> IntegrityReport:
        """Compare tables, indexes, views and triggers with those that this version makes."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


class DurableStore(Store, Protocol):
    """A store that outlives its process, and so can be backed up."""

    def snapshot(self) -> AbstractContextManager[StoreSnapshot]:
        """The store as it is now, until the context ends; writers do not wait for it."""
        ...


# --- artifacts of handoffs --------------------------------------------------------------------

ArtifactProblem = Literal["missing", "different", "too_large", "passing"]


class ExpectedArtifact(Struct, frozen=True):
    """Expected properties of an artifact; one that is not given may be anything."""

    sha256: str = ""
    size: int | None = None


class StoredArtifact(Struct, frozen=True):
    """An artifact of which a verified copy is stored."""

    sha256: str
    size: int


class ArtifactMismatch(Struct, frozen=True):
    """The reason why an artifact is not as expected; `passing`: a later try may succeed."""

    problem: ArtifactProblem
    detail: str


class ArtifactStore(Protocol):
    """Store for copies of artifacts, under the hash of their content (S-ACP-8)."""

    def file_size(self, teamspace: str, path: str) -> int | ArtifactMismatch:
        """Size in bytes of a file beneath the roots of a teamspace, without reading it."""
        ...

    def store_file(
        self, teamspace: str, path: str, expected: ExpectedArtifact
    ) -> StoredArtifact | ArtifactMismatch:
        """Check a file beneath the roots of a teamspace, and store a copy of it."""
        ...

    def verify_copy(self, sha256: str) -> ArtifactMismatch | None:
        """Check a stored copy; None if it is unchanged."""
        ...


# --- runners of agents ------------------------------------------------------------------------

SESSION_VARIABLE: Final = "DRAGOMAN_SESSION"
"""The environment variable with the session of the attempt, for every program that is started."""

OnMessage = Callable[[bytes], Awaitable[str]]
"""Takes a message of the agent; returns a note about it, or an empty text."""


class Assignment(Struct, frozen=True):
    """One attempt of one agent on one task."""

    agent: str
    task: str
    """The task's own id; messages and files use its AOF id."""
    aof_id: str
    title: str
    attempt: int
    fence: int
    session: str
    """Unique and stable: a runner that gets the same one twice drops the repeat."""
    ttl_ms: int
    """The longest time without a heartbeat."""
    prompt: str
    must_report: bool = False
    """True if an end without a report is a failure, even with a good exit status."""
    resume_commit: str = ""
    """The commit at which an earlier attempt stopped, as that one stated; empty: none."""


class RunExit(Struct, frozen=True):
    """The end of a run."""

    problem: str = ""
    """The error, for a person; empty: none."""
    limited_until: int | None = None
    """End of the usage limit that it has met, 0: unknown; None: it has met none."""


class Run(Protocol):
    """An agent that is running."""

    @property
    def renews_lease(self) -> bool:
        """True if its being alive renews the lease; if not, it has to send heartbeats."""
        ...

    @property
    def output_bytes(self) -> int:
        """Size of its output so far, in bytes."""
        ...

    async def wait(self) -> RunExit:
        """Wait until it has ended, by itself or by `stop`, and all its messages were handled."""
        ...

    async def stop(self, grace: float, reason: str = "") -> None:
        """Ask it and all it has started to end, and kill them after so many seconds.

        `reason` goes to the log of the run.
        """
        ...

    def forget(self) -> None:
        """Forget the run: its attempt is settled, and needs no recovery after a crash."""
        ...


class Runner(Protocol):
    """Starts agents of one kind."""

    async def start(self, assignment: Assignment, on_message: OnMessage) -> Run:
        """Start the agent."""
        ...


class Gap(Struct, frozen=True):
    """A cursor beyond the ledger's end, and the position from which its reader goes on."""

    after: int
    until: int


def find_gap(store: Store, after: int) -> Gap | None:
    """The gap of a cursor beyond the ledger's end, as after the restore of a backup.

    A reader that kept such a cursor would miss every entry up to it.
    """
    end = store.head()
    return Gap(after, end) if after > end else None
