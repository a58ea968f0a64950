"""Visibility: what a reader may read of handoffs in a teamspace with members.

The one policy of every surface: of handoffs and letters as records, and of their entries in the
ledger. Everything else is visible to whoever may read at all.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import ACTOR_STREAMS, check_id, handoff_stream, mail_stream
from dragoman.core.mail import Mail
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import stream_state
from dragoman.ledger.entry import Entry
from dragoman.ledger.stream_state import State

# --- teamspaces -------------------------------------------------------------------------------


class Team(Protocol):
    """The members of a teamspace."""

    @property
    def members(self) -> Collection[str]:
        """Names of those who work in it."""
        ...

    @property
    def coordinators(self) -> Collection[str]:
        """Names of those who coordinate it."""
        ...


NO_TEAMS: Final[Mapping[str, Team]] = {}
"""Without teams every teamspace is open to all."""


def is_closed(teams: Mapping[str, Team], teamspace: str) -> bool:
    """True for a teamspace that is not everybody's."""
    team = teams.get(teamspace)
    return team is not None and bool(team.members or team.coordinators)


def is_member(teams: Mapping[str, Team], teamspace: str, actor: Actor | str) -> bool:
    """True if this actor may see and act in a teamspace, as far as membership is concerned."""
    team = teams.get(teamspace)
    if team is None or (isinstance(actor, Actor) and actor.role in MAY_DISPATCH):
        return True
    if isinstance(actor, Actor) and actor.role == "coordinator" and team.coordinators:
        return actor.name in team.coordinators
    name = actor if isinstance(actor, str) else actor.name
    return not team.members or name in team.members or name in team.coordinators


# --- readers and audiences --------------------------------------------------------------------


ANY_TEAMSPACE: Final = ""
"""Teamspace of what may be about a handoff of any: only a reader who sees all may read it."""


class Audience(Struct, frozen=True):
    """Those who may read something: the members of a teamspace, and its own parties."""

    teamspace: str
    parties: tuple[str, ...]
    """Sender and recipients. They keep access when they leave the teamspace: they can finish or
    give back what they hold."""


class Reader(Struct, frozen=True):
    """A reader, and the teamspaces that are hidden from them."""

    name: str = ""
    hidden_teamspaces: frozenset[str] = frozenset()

    @property
    def sees_all(self) -> bool:
        """True if nothing is hidden from this reader."""
        return not self.hidden_teamspaces

    def may_read(self, audience: Audience | None) -> bool:
        """True for those of the audience; no audience: everybody."""
        if audience is None or self.sees_all or self.name in audience.parties:
            return True
        return audience.teamspace not in (ANY_TEAMSPACE, *self.hidden_teamspaces)


OWNER: Final = Reader()
"""The owner of the hub, who sees all; as do all readers from whom nothing is hidden."""


def find_reader(actor: Actor, teams: Mapping[str, Team]) -> Reader:
    """The reader that a caller is."""
    hidden = frozenset(name for name in teams if not is_member(teams, name, actor))
    return Reader(actor.name, hidden) if hidden else OWNER


# --- records ----------------------------------------------------------------------------------


class _HandoffReference(Struct, frozen=True):
    """The field by which a letter about a handoff names it."""

    handoff_id: str = ""


def visible_to(reader: Reader, store: Store) -> Callable[[State | None], bool]:
    """A predicate for the handoffs and letters that this reader may see; it sees all others."""
    if reader.sees_all:
        return lambda _: True
    return lambda state: reader.may_read(find_audience(store, state))


def find_audience(store: Store, state: State | None) -> Audience | None:
    """Those who may read a handoff, or a letter about one; None: everybody."""
    if isinstance(state, Mail):
        about = _handoff_named_in(state)
        found = find_audience(store, _stored_handoff(store, about)) if about else None
        return found and Audience(
            found.teamspace, (*found.parties, state.sender, *state.recipients)
        )
    return handoff_audience(state) if isinstance(state, Handoff) else None


def handoff_audience(handoff: Handoff) -> Audience:
    """Those who may read a handoff."""
    return Audience(handoff.teamspace, (handoff.sender, handoff.recipient))


def _handoff_named_in(mail: Mail) -> str:
    try:
        named = msgspec.json.decode(mail.body, type=_HandoffReference).handoff_id
    except msgspec.DecodeError:
        return ""
    return "" if check_id(named, "handoff id") else named


def _stored_handoff(store: Store, id: str) -> State | None:
    row = store.stream(handoff_stream(id))
    return None if row is None else stream_state(store, row)


# --- entries ----------------------------------------------------------------------------------

_WITH_AUDIENCE: Final = (handoff_stream(""), mail_stream(""), ACTOR_STREAMS)
"""Beginnings of the streams whose entries may have an audience."""

_MAX_KNOWN: Final = 10_000


ReadableEntry = tuple[Entry, Audience | None]
"""An entry and those who may read it; None: everybody."""


class EntrySource:
    """Entries of the ledger, each with its audience: the one way from the ledger to a reader.

    Without teamspaces with members every entry is everybody's, and nothing is looked up.
    """

    def __init__(self, store: Store, teams: Mapping[str, Team]) -> None:
        self.store = store
        self._has_audiences = any(is_closed(teams, name) for name in teams)
        self._known: dict[str, Audience] = {}
        """Stream -> its audience, which never changes."""

    def page(self, after: int, limit: int) -> list[ReadableEntry]:
        """Entries by position."""
        return self.add_audiences(self.store.entries(after, limit))

    def history(self, stream: str, after: int, limit: int) -> list[ReadableEntry]:
        """The entries of one stream after a version."""
        return self.add_audiences(self.store.history(stream, after, limit))

    def add_audiences(self, entries: Iterable[Entry]) -> list[ReadableEntry]:
        """Add the audience of each entry."""
        return [(entry, self._find(entry)) for entry in entries]

    def needs_lookup(self, entries: Iterable[Entry]) -> bool:
        """True if the audience of one of these entries is looked up in the store."""
        return any(map(self._may_have_audience, entries))

    def _may_have_audience(self, entry: Entry) -> bool:
        return self._has_audiences and entry.stream.startswith(_WITH_AUDIENCE)

    def _find(self, entry: Entry) -> Audience | None:
        if not self._may_have_audience(entry):
            return None
        if entry.stream.startswith(ACTOR_STREAMS):
            # A message that was refused may be about a handoff.
            return Audience(ANY_TEAMSPACE, (entry.stream.rpartition(":")[2],))
        known = self._known.get(entry.stream)
        if known is not None:
            return known
        row = self.store.stream(entry.stream)
        found = find_audience(self.store, row and stream_state(self.store, row))
        if found is not None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[entry.stream] = found
        return found
