"""Letters about handoffs in teamspaces that are not the reader's: for it they are not there."""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.letter import Mail
from dragoman.engine.ports import Store
from dragoman.engine.reads.handoffs import find_handoff, is_hidden_from
from dragoman.engine.reads.teamspaces import Team, hidden_teamspaces


class _HandoffReference(Struct, frozen=True):
    """The field by which a letter about a handoff names it."""

    handoff_id: str = ""


def mail_visible_to(
    reader: Actor, teams: Mapping[str, Team], store: Store
) -> Callable[[Mail], bool]:
    """A predicate for the letters that this reader may see; sender and recipients always may."""
    hidden = hidden_teamspaces(teams, reader)

    def is_visible(mail: Mail) -> bool:
        if not hidden or mail.sender == reader.name or mail.is_recipient(reader.name):
            return True
        try:
            about = msgspec.json.decode(mail.body, type=_HandoffReference).handoff_id
        except msgspec.DecodeError:
            return True
        found = find_handoff(store, about) if about else None
        return not (isinstance(found, Handoff) and is_hidden_from(found, reader.name, hidden))

    return is_visible
