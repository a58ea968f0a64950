"""A hub in memory with a manual clock, and a store with open tables and injected failures."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from dragoman.core.actor import Actor
from dragoman.core.attempt_state import Lease
from dragoman.core.base import Command
from dragoman.core.errors import Refusal, StoreLost
from dragoman.core.read import Receipt
from dragoman.core.task_state import Task
from dragoman.engine.group_commit import Engine, Failpoint
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Transaction
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Committed, Outcome, Request
from dragoman.engine.subscribe import CommitHints
from dragoman.engine.verify import Finding, check_ledger, check_stored_states
from dragoman.ledger.checkpoint import EMPTY_TREE, Checkpoint, extend_tree, tree_root
from dragoman.ledger.entry import read_line
from dragoman.store.memory import MemoryStore
from dragoman.store.memory.store import Tables
from dragoman.system.clock import ManualClock, SequentialIds

T = TypeVar("T")

START = 1_770_647_400_000
"""2026-02-09T14:30:00.000Z."""

TTL = 300_000

HUMAN = Actor("human", "hera")
ALICE = Actor("agent", "alice")
BOB = Actor("agent", "bob")
CAROL = Actor("agent", "carol")


class OpenStore(MemoryStore):
    """Memory store with public tables and injected failures."""

    def __init__(self, ledger_id: str = "lab") -> None:
        super().__init__(ledger_id)
        self.faults: list[Exception | None] = []
        """Errors of the next transactions, raised before they commit; None: it works."""
        self.losses = 0
        """Number of next transactions that commit and then lose their connection."""
        self.transactions = 0
        self.calls: list[tuple[str, Any]] = []
        """Calls of sessions: the method and its first argument."""
        self.is_fresh = True

    @property
    def tables(self) -> Tables:
        return self._tables

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run the work in a recording session, with the next injected failure."""
        self.transactions += 1
        fault = self.faults.pop(0) if self.faults else None

        def recorded_work(session: Transaction) -> T:
            result = work(cast(Transaction, _RecordingSession(session, self)))
            if fault is not None:
                raise fault
            return result

        result = super().transact(recorded_work)
        if self.losses:
            self.losses -= 1
            raise StoreLost("the connection broke during the commit")
        return result

    def copy(self) -> "OpenStore":
        """Copy the ledger, for tampering."""
        other = OpenStore(self._ledger_id)
        tables = other.tables
        tables.entries = list(self._tables.entries)
        tables.histories = {name: list(kept) for name, kept in self._tables.histories.items()}
        tables.rows = dict(self._tables.rows)
        tables.numbers = dict(self._tables.numbers)
        tables.aliases = dict(self._tables.aliases)
        tables.kinds_of_alias = {
            name: list(kinds) for name, kinds in self._tables.kinds_of_alias.items()
        }
        tables.lists = {name: dict(places) for name, places in self._tables.lists.items()}
        tables.handoffs = dict(self._tables.handoffs)
        tables.active_handoffs = dict(self._tables.active_handoffs)
        tables.log_rows = dict(self._tables.log_rows)
        return other

    def picture(self) -> dict[str, Any]:
        """Deep copy of all tables."""
        tables = vars(self._tables)
        return {name: deepcopy(table) for name, table in tables.items() if name != "last_stream"}

    def picture_of_tasks(self) -> dict[str, Any]:
        """Copy of everything stored for tasks, without the refusals of actors."""
        tables = self._tables
        return {
            "entries": [entry for entry in tables.entries if entry.stream.startswith("task:")],
            "rows": {r.name: r for r in tables.rows.values() if r.name.startswith("task:")},
            "names": dict(tables.aliases),
            "answers": dict(tables.answers),
            "numbers": dict(tables.daily_numbers),
        }


class _RecordingSession:
    """Session that records its calls."""

    def __init__(self, session: Transaction, store: OpenStore) -> None:
        self._session = session
        self._store = store

    @property
    def is_fresh(self) -> bool:
        return self._store.is_fresh

    @property
    def first_position(self) -> int:
        return self._session.first_position

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        method = getattr(self._session, verb)

        def record_call(*arguments: Any) -> Any:
            for text in _texts(arguments):
                text.encode()
                assert "\x00" not in text, "no database can be asked for this"
            self._store.calls.append((verb, arguments[0] if arguments else None))
            return method(*arguments)

        return record_call


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for part in cast(list[Any], value):
            yield from _texts(part)


class Lab:
    """Hub whose clock, ids and store the test controls."""

    def __init__(
        self, store: OpenStore | None = None, *, failpoint: Failpoint = lambda _: None
    ) -> None:
        self.store = store or OpenStore()
        self.clock = ManualClock(START)
        self.hints = CommitHints()
        self.engine = Engine(
            self.store, self.clock, b"secret", failpoint=failpoint, on_commit=self.hints.notify
        )
        self.hub = Hub(self.engine, SequentialIds())

    def request(
        self, actor: Actor, *commands: Command, key: str = "", original_text: bytes | None = None
    ) -> Request:
        """Make a request with a new id."""
        original = msgspec.UNSET if original_text is None else Raw(original_text)
        return self.hub.make_request(actor, *commands, key=key, original_text=original)

    def ask(
        self, actor: Actor, *commands: Command, key: str = "", original_text: bytes | None = None
    ) -> Outcome:
        """Submit a request and return its outcome."""
        return self.engine.handle_now(
            self.request(actor, *commands, key=key, original_text=original_text)
        )

    def do(self, actor: Actor, *commands: Command, key: str = "") -> Receipt:
        """Submit a request that must be accepted, and return its last receipt."""
        return assert_accepted(self.ask(actor, *commands, key=key)).receipts[-1]

    def code(self, actor: Actor, *commands: Command, key: str = "") -> str:
        """Submit a request and return its refusal code, or "" if accepted."""
        return code(self.ask(actor, *commands, key=key))

    def batch(self, *requests: Request) -> list[Any]:
        """Submit requests in one batch, and return their outcomes and exceptions."""

        async def run_batch() -> list[Any]:
            waiting = (self.engine.handle(request) for request in requests)
            return await asyncio.gather(*waiting, return_exceptions=True)

        before = self.store.transactions
        answers = asyncio.run(run_batch())
        assert self.store.transactions > before
        return answers

    def task(self, name: str) -> Task:
        """Load the stored task."""
        found = find_task(self.store, name)
        assert not isinstance(found, Refusal), found
        return found.task

    def lease(self, name: str) -> Lease | None:
        """Load the stored lease."""
        view = find_task(self.store, name)
        assert not isinstance(view, Refusal), view
        return view.lease

    def lines(self) -> list[tuple[str, str]]:
        """List stream and event name of every entry."""
        return [(entry.stream, entry.event) for entry in self.store.entries(0, 100_000)]

    def refused(self, actor: Actor) -> list[str]:
        """List the refusal codes recorded in an actor's stream."""
        kept = self.store.history(actor.stream, 0, 10_000)
        return [msgspec.json.decode(read_line(entry.line).body)["code"] for entry in kept]


def assert_accepted(outcome: Any) -> Committed:
    """Return the outcome, which must be accepted."""
    assert isinstance(outcome, Committed), outcome
    return outcome


def code(outcome: Any) -> str:
    """Return the code of a refusal, or "" if accepted."""
    assert isinstance(outcome, Committed | Refusal), outcome
    return outcome.code if isinstance(outcome, Refusal) else ""


def checkpoint(store: MemoryStore, size: int | None = None) -> Checkpoint:
    """Make an unsigned checkpoint over the first entries."""
    hashes = [entry.hash for entry in store.entries(0, 100_000, until=size)]
    tree = extend_tree(EMPTY_TREE, hashes)
    peaks = tuple(peak.hex() for peak in tree.peaks)
    return Checkpoint(store.ledger_id(), tree.size, tree_root(tree).hex(), peaks, "", "")


def findings(store: MemoryStore, checkpoints: Sequence[Checkpoint] = ()) -> list[Finding]:
    """List everything that verify finds."""

    def no_progress(_: int) -> None:
        """Ignore progress."""

    return [
        *check_ledger(store, checkpoints, no_progress),
        *check_stored_states(store, no_progress),
    ]
