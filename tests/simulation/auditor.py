"""Invariants of a hub, checked while faults are injected.

The auditor reads the ledger from a store that never fails, entry by entry as it grows, and
remembers what people and agents were promised.
"""

import re
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from dragoman.core.actor import HUB_NAME
from dragoman.core.attempt_state import Lease, TaskCheckpointed, TaskClaimed, TaskReported
from dragoman.core.event_table import EVENT_NAMES, STATUS_CHANGE_NAMES
from dragoman.core.mail import MailPosted
from dragoman.core.task_state import Task
from dragoman.engine.ports import Store, TaskQuery
from dragoman.engine.queries.entries import decode_event, stream_state
from dragoman.engine.queries.tasks import find_task, list_tasks
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.ledger.checkpoint import EMPTY_TREE, Checkpoint, extend_tree, tree_root
from dragoman.ledger.entry import Entry, read_line

_PAGE = 1_000
_WORD = re.compile(rb"w[0-9]+x")
_CLAIMED = EVENT_NAMES[TaskClaimed]
_POSTED = EVENT_NAMES[MailPosted]
_WORK = frozenset((EVENT_NAMES[TaskReported], EVENT_NAMES[TaskCheckpointed]))
"""Events that only the holder of a task may cause."""
_NO_EFFECT = frozenset(("command.refused", "message.received"))
"""Entries that record a message without an effect."""


class Broken(AssertionError):
    """Violation of an invariant."""


class Attempt(Struct, frozen=True):
    """Holder of a task and its fence."""

    agent: str
    fence: int


class Auditor:
    """Reader of the ledger of one simulation."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.entries_read = 0
        """Number of entries read so far."""
        self._checked_at = 0
        """Length of the ledger at the last check of all tasks."""
        self._held: dict[str, Attempt | None] = {}
        self._fences: dict[str, int] = {}
        self._words = Counter[tuple[bytes, str]]()
        self._promised: dict[str, str] = {}
        """Word -> event that must contain it."""

    # Reading

    def read_new_entries(self) -> None:
        """Read and check the new entries of the ledger."""
        while page := self.store.entries(self.entries_read, _PAGE):
            for entry in page:
                check(
                    entry.position == self.entries_read + 1,
                    f"position {self.entries_read + 1} is missing",
                )
                self.entries_read = entry.position
                self._check_entry(entry)

    def expect_recorded(self, word: str, event: str) -> None:
        """Expect this word in an entry of this event: its sender got an acceptance."""
        self._promised[word] = event

    def held(self, task: str) -> tuple[Task, Lease | None, int] | None:
        """Present task, its lease, and the version of its stream."""
        row = self.store.stream(f"task:{task}")
        state = None if row is None else stream_state(self.store, row)
        return (state, row.lease, row.version) if row and isinstance(state, Task) else None

    def check_fenced_write(
        self, before: tuple[Task, Lease | None, int] | None, task: str, fence: int, now: int
    ) -> None:
        """Check an accepted write under this fence against the state before it."""
        check(before is not None, f"{task} is unknown, and was written to")
        assert before is not None
        state, lease, version = before
        check(state.fence == fence, f"{task}: token {fence} was taken, while {state.fence} counts")
        after = self.held(task)
        if after is not None and after[2] > version:
            is_held = lease is not None and lease.fence == fence and lease.is_valid(now)
            check(is_held, f"{task}: a write under token {fence} was taken, whose lease was over")

    # Checks

    def check_after_recovery(self, now: int) -> None:
        """Check that no expired lease is left, and that tasks and leases agree."""
        expired = self.store.expired_leases(now, 10)
        check(not expired, f"after a recovery at {now} these leases live on: {expired}")
        if self._checked_at == self.entries_read:
            return
        self._checked_at = self.entries_read
        for task, lease in self.tasks():
            check(
                (task.status == "in-progress") == (lease is not None),
                f"{task.id} is {task.status} with the lease {lease}",
            )
            check(
                lease is None or lease.holder == task.assignee,
                f"{task.id} is {task.assignee}'s, but held: {lease}",
            )
            check(
                lease is None or lease.expires_at == lease.last_heartbeat + lease.ttl_ms,
                f"{task.id} has a lease that does not end {lease and lease.ttl_ms} ms after its "
                f"last sign of life: {lease}",
            )
            check(
                task.failures < task.max_attempts or task.status == "deadletter",
                f"{task.id} has failed {task.failures} times and is {task.status}",
            )

    def check_at_end(self, checkpoints: list[Checkpoint]) -> bytes:
        """Check that every promise is kept once and the ledger verifies; return its root."""
        self.read_new_entries()
        for word, event in self._promised.items():
            count = self._words[word.encode(), event]
            check(count == 1, f"{word} was acknowledged, and stands in {count} entries {event}")
        problems = [
            *check_ledger(self.store, checkpoints, _ignore_progress),
            *check_stored_states(self.store, _ignore_progress),
        ]
        check(not problems, f"verify finds {problems[:3]}")
        page, tree = self.store.entries(0, _PAGE), EMPTY_TREE
        while page:
            tree = extend_tree(tree, (entry.hash for entry in page))
            page = self.store.entries(page[-1].position, _PAGE)
        return tree_root(tree)

    def tasks(self) -> Iterator[tuple[Task, Lease | None]]:
        """Tasks and their leases."""
        query = TaskQuery(limit=_PAGE)
        while page := list_tasks(self.store, query):
            yield from ((view.task, view.lease) for view in page)
            query = TaskQuery(before=page[-1].number, limit=_PAGE)

    def task(self, name: str) -> Task | None:
        found = find_task(self.store, name)
        return getattr(found, "task", None)

    def _check_entry(self, entry: Entry) -> None:
        if entry.event not in _NO_EFFECT:
            self._count_words(entry)
        if not entry.stream.startswith("task:"):
            return
        task = entry.stream
        if entry.event == _CLAIMED:
            claimed = decode_event(entry)
            assert isinstance(claimed, TaskClaimed)
            held = self._held.get(task)
            check(held is None, f"{task} was claimed by {claimed.agent}, while held: {held}")
            last = self._fences.get(task, 0)
            check(claimed.fence > last, f"{task}: token {claimed.fence} after {last}")
            self._fences[task] = claimed.fence
            self._held[task] = Attempt(claimed.agent, claimed.fence)
        elif entry.event in _WORK:
            held, by = self._held.get(task), read_line(entry.line).actor
            event = decode_event(entry)
            is_hubs = isinstance(event, TaskReported) and bool(event.by)
            expected_actor = f"system:{HUB_NAME}" if is_hubs else f"agent:{held and held.agent}"
            is_by_holder = held is not None and by == expected_actor
            check(is_by_holder, f"{task}: {entry.event} by {by}, while held: {held}")
        elif entry.event in STATUS_CHANGE_NAMES:
            self._held[task] = None

    def _count_words(self, entry: Entry) -> None:
        if b"x" not in entry.line:
            return
        line = read_line(entry.line)
        if entry.event == _POSTED and line.actor.startswith("system:"):
            return  # a closing report quotes words of others
        for word in set(_WORD.findall(bytes(line.body))):
            self._words[word, entry.event] += 1
            count = self._words[word, entry.event]
            check(count == 1, f"{word.decode()} stands in {count} entries {entry.event}")


def check(holds: bool, otherwise: str) -> None:
    """Raise a violation unless the condition holds."""
    if not holds:
        raise Broken(otherwise)


def _ignore_progress(_: int) -> None:
    """Ignore the progress."""
