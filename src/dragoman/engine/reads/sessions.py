"""In which session a task has moved: the entry of a move does not say it, unless it is a claim."""

from typing import Final

from dragoman.core.events import EVENT_NAMES, AnyEvent, TaskClaimed
from dragoman.core.states.moves import status_change_of
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import decode_event
from dragoman.ledger.entry import Entry

_CLAIMED: Final = EVENT_NAMES[TaskClaimed]
_CLAIM_PAGE: Final = 100
"""Number of entries of a task that are read at a time, to find the claim before one of them."""


def session_of_move(store: Store, entry: Entry, event: AnyEvent) -> str:
    """The session of a move: that of the attempt which it begins or ends; else the one in which it
    was requested; else the stream of its task stands for it."""
    return (
        _session_of_attempt(store, entry, event) or requesting_session(store, event) or entry.stream
    )


def requesting_session(store: Store, event: AnyEvent) -> str:
    """The session of the event that requested a move; empty: none did."""
    asked_by: str = getattr(event, "asked_by", "")
    found = store.trace_event(asked_by.lower()) if asked_by else None
    return "" if found is None else found.stream.partition(":")[2]


def _session_of_attempt(store: Store, entry: Entry, event: AnyEvent) -> str:
    if isinstance(event, TaskClaimed):
        return event.session
    move = status_change_of(event)
    if move is None or move.from_ != "in-progress":
        return ""
    ends = range(entry.version - 1, 0, -_CLAIM_PAGE)
    pages = (
        store.history(entry.stream, max(0, end - _CLAIM_PAGE), min(end, _CLAIM_PAGE))
        for end in ends
    )
    claims = (one for page in pages for one in reversed(page) if one.event == _CLAIMED)
    claim = next(map(decode_event, claims), None)
    return claim.session if isinstance(claim, TaskClaimed) else ""
