"""Handoffs: one by its id, and pages of those that match a filter."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    ALL_HANDOFFS,
    Handoff,
    HandoffStatus,
)
from dragoman.core.ids import check_agent, check_id, is_task_name
from dragoman.core.task_state import Task
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.agents import names_in_role
from dragoman.engine.queries.entries import (
    END_OF_LIST,
    MAX_PAGE_BYTES,
    MAX_SCANNED,
    find_by_id,
    stream_state,
    walk_list,
)
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.visibility import OWNER, Reader, Team, handoff_audience


def find_coordinators(store: Store, team: Team | None = None) -> tuple[str, ...]:
    """The coordinators for a stuck handoff: those of that teamspace.

    Without one there, all orchestrators and people.
    """
    named = names_in_role(store, "coordinator")
    members = (team.coordinators or team.members) if team else ()
    if not members:
        return named
    here = tuple(name for name in named if name in members)
    return here or names_in_role(store, "orchestrator") + names_in_role(store, "human")


_PAGE: Final = 500


class HandoffFilter(Struct, frozen=True):
    """Filters for a page of handoffs; empty ones match all."""

    status: HandoffStatus | None = None
    task: str = ""
    """By any of its names."""
    sender: str = ""
    recipient: str = ""
    teamspace: str = ""
    reader: Reader = OWNER
    before: int = END_OF_LIST
    limit: int = 50

    @property
    def list_name(self) -> str:
        """The list to read: likely the shortest of those that hold all matches."""
        narrow = (
            ("task", self.task),
            ("status", self.status if self.status != "closed" else None),
            ("to", self.recipient),
            ("from", self.sender),
            ("status", self.status),
            ("space", self.teamspace),
        )
        return next((f"handoffs.{kind}:{name}" for kind, name in narrow if name), "handoffs")

    def matches(self, handoff: Handoff) -> bool:
        """True if the handoff belongs on the page."""
        if not self.reader.may_read(handoff_audience(handoff)):
            return False
        comparisons = (
            (self.status, handoff.status),
            (self.task, handoff.task),
            (self.sender, handoff.sender),
            (self.recipient, handoff.recipient),
            (self.teamspace, handoff.teamspace),
        )
        return all(wanted in (None, "", given) for wanted, given in comparisons)


class HandoffPage(Struct, frozen=True):
    """Handoffs, newest first, and the cursor of the next page, if there may be one.

    A page may end early, even before the first match.
    """

    handoffs: tuple[Handoff, ...]
    next: int | None


def load_handoff(store: Store, id: str) -> Handoff | None:
    """The handoff with this id, whoever may see it; None: there is none."""
    found = find_by_id(store, id, Handoff)
    return None if isinstance(found, Refusal) else found


def handoff_held_by(store: Store, task: Task, agent: str) -> Handoff | None:
    """The handoff by which an agent has taken a task, if it did so by one."""
    active = task.handoff
    is_taken = active is not None and active.is_taken and active.recipient == agent
    return load_handoff(store, active.id) if active is not None and is_taken else None


def find_handoff(store: Store, id: str, reader: Reader = OWNER) -> Handoff | Refusal:
    """The handoff with this id, if `reader` may see it."""
    found = find_by_id(store, id, Handoff)
    is_hidden = isinstance(found, Handoff) and not reader.may_read(handoff_audience(found))
    return not_found.handoff(id) if is_hidden else found


def escalation_recipients(
    teams: Mapping[str, Team], fallback: str, store: Store, id: str
) -> tuple[str, ...]:
    """Those who are told about a handoff that is stuck: coordinators, or else `fallback` and all
    people."""
    found = find_handoff(store, id) if teams and id else None
    team = teams.get(found.teamspace) if isinstance(found, Handoff) else None
    return find_coordinators(store, team) or (fallback, *names_in_role(store, "human"))


def handoff_page(store: Store, filters: HandoffFilter) -> HandoffPage | Refusal:
    """A page of the handoffs that match; an invalid name is refused."""
    refusal = _check_names(filters)
    if refusal is not None:
        return refusal
    known = find_task(store, filters.task) if filters.task else None
    if known is not None and not isinstance(known, Refusal):
        filters = replace(filters, task=known.task.id)
    found = list[Handoff]()
    query = ListQuery(filters.list_name, before=filters.before, limit=filters.limit)
    cursor, size = filters.before, 0
    for looked_at, place in enumerate(walk_list(store, query)):
        if len(found) == filters.limit or looked_at == MAX_SCANNED or size >= MAX_PAGE_BYTES:
            return HandoffPage(tuple(found), cursor)
        cursor = place.position
        handoff = stream_state(store, place.row)
        if isinstance(handoff, Handoff) and filters.matches(handoff):
            found.append(handoff)
            size += len(place.row.state)
    return HandoffPage(tuple(found), None)


def needed_artifact_hashes(store: Store) -> frozenset[str]:
    """The SHA-256 of each artifact whose copy some handoff needs: all but those of rejected ones.

    Closed handoffs have to stay provable; what was rejected was never used, or was given back.
    """
    items = walk_list(store, ListQuery(ALL_HANDOFFS, before=END_OF_LIST, limit=_PAGE))
    handoffs = (stream_state(store, place.row) for place in items)
    return frozenset(
        sha256
        for handoff in handoffs
        if isinstance(handoff, Handoff) and handoff.rejection is None
        for sha256 in handoff.artifacts.values()
    )


def _check_names(filters: HandoffFilter) -> Refusal | None:
    for name in filter(None, (filters.sender, filters.recipient)):
        if malformed := check_agent(name):
            return malformed
    if filters.task and not is_task_name(filters.task):
        return Refusal("invalid_id", f"{filters.task[:40]!a} is not the name of a task")
    return check_id(filters.teamspace, "teamspace") if filters.teamspace else None
