"""Recorded turns and events of a task, page by page, and those of an earlier import."""

from collections.abc import Iterator
from typing import Any

from dragoman.core.errors import Refusal
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.traces import TurnView, attempts_with_turns, trace_page, turn_page

_PAGE_SIZE = 500


def iterate_turns(store: Store, task: str, attempt: int) -> Iterator[TurnView]:
    """Turns of an attempt, in order."""
    after = -1
    while page := turn_page(store, task, attempt, after, _PAGE_SIZE).turns:
        yield from page
        after = page[-1].turn_index


def iterate_events(store: Store, task: str) -> Iterator[dict[str, Any]]:
    """SAOP events of a task, in order."""
    after = 0
    while page := (reply := trace_page(store, task=task, after=after, limit=_PAGE_SIZE)).events:
        yield from (one.event for one in page)
        after = reply.next


class EarlierImport:
    """Finds what an earlier import of the same session recorded; a `Begin` of a transcript."""

    def __init__(self, store: Store, task: str, *, has_chosen_session: bool) -> None:
        """`has_chosen_session`: the session was named by an option, and that name counts."""
        self._store = store
        self._task = task
        self._has_chosen_session = has_chosen_session
        self.turns: dict[int, TurnView] = {}
        """Turns recorded under other attempts or outside of any: they are not recorded again."""

    def __call__(self, own: str, session: str) -> tuple[str, int]:
        """Session name and first turn: as imported earlier, else behind all recorded turns."""
        found = find_task(self._store, self._task)
        if isinstance(found, Refusal):
            return session, 0
        task, last, first = found.task, -1, None
        for attempt in attempts_with_turns(self._store, task.id):
            for turn in iterate_turns(self._store, task.id, attempt):
                last = turn.turn_index if attempt == task.attempts else last
                if not self._is_same_session(turn, own, session):
                    continue
                first = first or turn
                if attempt != task.attempts:
                    self.turns[turn.turn_index] = turn
        if first is None:
            return session, last + 1
        return first.envelope["metadata"]["session_id"], first.turn_index

    def _is_same_session(self, turn: TurnView, own: str, session: str) -> bool:
        metadata: dict[str, Any] = turn.envelope["metadata"]
        is_named_so = metadata.get("session_id") == session
        captured: Any = metadata.get("captured")
        if self._has_chosen_session or not own or not isinstance(captured, dict):
            return is_named_so
        return captured == {**captured, "session": own}
