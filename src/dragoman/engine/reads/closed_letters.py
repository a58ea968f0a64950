"""Letters about handoffs in teamspaces that are not the reader's: for it they are not there."""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.letter import Mail
from dragoman.engine.ports import Store
from dragoman.engine.reads.handoffs import find_handoff, is_shut_out
from dragoman.engine.reads.teamspaces import Team, closed_to


class _AboutHandoff(Struct, frozen=True):
    """The field by which a letter about a handoff names it."""

    handoff_id: str = ""


def is_shown_to(reader: Actor, teams: Mapping[str, Team], store: Store) -> Callable[[Mail], bool]:
    """A predicate for the letters that this reader may see; sender and recipients always may."""
    closed = closed_to(teams, reader)

    def is_shown(mail: Mail) -> bool:
        if not closed or mail.sender == reader.name or mail.is_for(reader.name):
            return True
        try:
            about = msgspec.json.decode(mail.body, type=_AboutHandoff).handoff_id
        except msgspec.DecodeError:
            return True
        found = find_handoff(store, about) if about else None
        return not (isinstance(found, Handoff) and is_shut_out(found, reader.name, closed))

    return is_shown
