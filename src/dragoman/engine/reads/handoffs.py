"""Reading handoffs: one by its id, or a page of those that fit."""

from collections.abc import Collection, Mapping
from itertools import takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.errors import Refusal
from dragoman.core.events import EVENT_NAMES, HandoffDrafted, HandoffProposed, HandoffStatus
from dragoman.core.ids import check_agent, check_id, handoff_stream, is_task_name
from dragoman.core.states.handoff import ALL_HANDOFFS, Handoff
from dragoman.core.states.task import Task
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import find, find_task, history, state_of
from dragoman.engine.reads.mailbox import LAST, MOST_BYTES, MOST_LOOKED_AT, walk
from dragoman.engine.reads.teamspaces import Team, coordinators

_PAGE: Final = 500
_DRAFTED, _PROPOSED = EVENT_NAMES[HandoffDrafted], EVENT_NAMES[HandoffProposed]


class Wanted(Struct, frozen=True):
    """Filters for a page of handoffs; empty ones match all."""

    status: HandoffStatus | None = None
    task: str = ""
    """By any of its names."""
    sender: str = ""
    recipient: str = ""
    teamspace: str = ""
    reader: str = ""
    """The reader: a draft is shown to its sender only. Empty: the owner of the hub, who sees all.
    """
    closed: frozenset[str] = frozenset()
    """Teamspaces that are hidden from the reader."""
    before: int = LAST
    limit: int = 50

    @property
    def list(self) -> str:
        """The list to read: likely the shortest of those that hold all matches."""
        if self.status == "draft":
            return f"handoffs.draft:{self.sender or self.reader}"
        narrow = (
            ("task", self.task),
            ("status", self.status if self.status != "closed" else None),
            ("to", self.recipient),
            ("from", self.sender),
            ("status", self.status),
            ("space", self.teamspace),
        )
        return next((f"handoffs.{kind}:{name}" for kind, name in narrow if name), "handoffs")

    def has(self, handoff: Handoff) -> bool:
        """True if the handoff belongs on the page."""
        if not _may_see(handoff, self.reader, self.closed):
            return False
        asked = (
            (self.status, handoff.status),
            (self.task, handoff.task),
            (self.sender, handoff.sender),
            (self.recipient, handoff.recipient),
            (self.teamspace, handoff.teamspace),
        )
        return all(wanted in (None, "", given) for wanted, given in asked)


class Page(Struct, frozen=True):
    """Handoffs, newest first, and the cursor of the next page, if there may be one.

    A page may end early, even before the first match.
    """

    handoffs: tuple[Handoff, ...]
    next: int | None


def is_shut_out(handoff: Handoff, name: str, closed: Collection[str]) -> bool:
    """True for a handoff in a hidden teamspace, except for its sender and recipient.

    Both keep access, also when one of them is removed from the teamspace: they can finish or give
    back what they hold.
    """
    return handoff.teamspace in closed and name not in (handoff.sender, handoff.recipient)


def _may_see(handoff: Handoff, reader: str, closed: Collection[str]) -> bool:
    """True if the reader may see it: a draft is its sender's until it is proposed or discarded."""
    if is_shut_out(handoff, reader, closed) or handoff.is_discarded:
        return False
    return handoff.status != "draft" or reader in ("", handoff.sender)


def known_handoff(store: Store, id: str) -> Handoff | None:
    """The handoff with this id, whoever may see it; None: there is none."""
    found = find(store, id, Handoff)
    return None if isinstance(found, Refusal) else found


def taken_handoff(store: Store, task: Task, agent: str) -> Handoff | None:
    """The handoff by which an agent has taken a task, if it did so by one."""
    by = task.handoff
    is_taken = by is not None and by.is_taken and by.recipient == agent
    return known_handoff(store, by.id) if by is not None and is_taken else None


def find_handoff(
    store: Store, id: str, reader: str = "", closed: Collection[str] = ()
) -> Handoff | Refusal:
    """The handoff with this id, as far as `reader` may see it; empty: the owner of the hub."""
    found = find(store, id, Handoff)
    if isinstance(found, Refusal) or _may_see(found, reader, closed):
        return found
    return missing.handoff(id)


def was_drafted(store: Store, handoff: Handoff) -> bool:
    """True if it was a draft until it was proposed."""
    events = (entry.event for entry in history(store, handoff_stream(handoff.id)))
    before = list(takewhile(lambda event: event != _PROPOSED, events))
    return handoff.status != "draft" and before[-1:] == [_DRAFTED]


def told_of(teams: Mapping[str, Team], otherwise: str, store: Store, id: str) -> tuple[str, ...]:
    """The people to tell about a handoff that is stuck; `fallback` if there are none."""
    found = find_handoff(store, id) if teams and id else None
    team = teams.get(found.teamspace) if isinstance(found, Handoff) else None
    return coordinators(store, team) or (otherwise,)


def page_of(store: Store, wanted: Wanted) -> Page | Refusal:
    """A page of the handoffs that match; an invalid name is refused."""
    refusal = _check_names(wanted) or _check_whose(wanted)
    if refusal is not None:
        return refusal
    known = find_task(store, wanted.task) if wanted.task else None
    if known is not None and not isinstance(known, Refusal):
        wanted = replace(wanted, task=known.task.id)
    found = list[Handoff]()
    query = ListQuery(wanted.list, before=wanted.before, limit=wanted.limit)
    cursor, size = wanted.before, 0
    for looked_at, place in enumerate(walk(store, query)):
        if len(found) == wanted.limit or looked_at == MOST_LOOKED_AT or size >= MOST_BYTES:
            return Page(tuple(found), cursor)
        cursor = place.position
        handoff = state_of(store, place.row)
        if isinstance(handoff, Handoff) and wanted.has(handoff):
            found.append(handoff)
            size += len(place.row.state)
    return Page(tuple(found), None)


def copies_needed(store: Store) -> frozenset[str]:
    """The SHA-256 of each artifact whose copy some handoff needs: all but those of rejected ones.

    Closed handoffs have to stay provable; what was rejected was never used, or was given back.
    """
    places = walk(store, ListQuery(ALL_HANDOFFS, before=LAST, limit=_PAGE))
    handoffs = (state_of(store, place.row) for place in places)
    return frozenset(
        sha256
        for handoff in handoffs
        if isinstance(handoff, Handoff) and handoff.rejection is None
        for sha256 in handoff.artifacts.values()
    )


def _check_whose(wanted: Wanted) -> Refusal | None:
    """Refuse if the owner of the hub asks for drafts without a sender: they are on their senders'
    lists."""
    if wanted.status != "draft" or wanted.sender or wanted.reader:
        return None
    return Refusal("invalid_field", "drafts are listed by sender: name one (from)")


def _check_names(wanted: Wanted) -> Refusal | None:
    for name in filter(None, (wanted.sender, wanted.recipient)):
        if malformed := check_agent(name):
            return malformed
    if wanted.task and not is_task_name(wanted.task):
        return Refusal("invalid_id", f"{wanted.task[:40]!a} is not the name of a task")
    return check_id(wanted.teamspace, "teamspace") if wanted.teamspace else None
