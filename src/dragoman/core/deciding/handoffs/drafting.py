"""Deciders of drafts: packages that nobody but their sender knows of yet."""

from dragoman.core.actors import Actor
from dragoman.core.authority import check_write
from dragoman.core.commands import DiscardDraft, DraftHandoff
from dragoman.core.deciding.handoffs.common import decided, wrong_state
from dragoman.core.deciding.handoffs.common import known as handoff_of
from dragoman.core.errors import Refusal
from dragoman.core.events import HandoffDiscarded, HandoffDrafted
from dragoman.core.ids import check_agent, check_id
from dragoman.core.limits import check_json
from dragoman.core.reading import Decision, Read
from dragoman.core.states.handoff import Handoff


def draft(command: DraftHandoff, read: Read, now: int) -> Decision | Refusal:
    """Create a draft, or update parts of it; a part that is given replaces that part.

    Parts are merged here, in the transaction, so that concurrent updates of different parts all
    last.
    """
    del now
    id = command.id or read.cause
    known = read.handoff(id)
    refusal = (
        check_write(read.actor)
        or check_id(id, "handoff id")
        or (check_agent(command.recipient) if command.recipient else None)
        or (check_id(command.teamspace, "teamspace") if command.teamspace else None)
        or check_json("package", command.package)
        or (check_draft(known, read.actor) if known else None)
    )
    if refusal:
        return refusal
    event = _with_parts(known, command, id, read.actor.name)
    if known is not None and not known.is_discarded and _is_same(known, event):
        return decided(id, "draft")
    return check_json("package", event.package) or decided(id, "draft", event)


def discard(command: DiscardDraft, read: Read, now: int) -> Decision | Refusal:
    """Discard a draft; what was proposed already is withdrawn instead."""
    del now
    known = read.handoff(command.id)
    if known is not None and known.is_discarded and known.sender == read.actor.name:
        return check_write(read.actor) or decided(command.id, "discarded")
    draft = handoff_of(command.id, read)
    if isinstance(draft, Refusal):
        return draft
    if draft.status != "draft":
        return wrong_state(draft, ("draft",), "discard")
    return decided(command.id, "discarded", HandoffDiscarded(read.actor.name))


def _with_parts(
    known: Handoff | None, command: DraftHandoff, id: str, sender: str
) -> HandoffDrafted:
    """Event that merges the given parts into the draft."""
    if known is None or known.is_discarded:
        teamspace = command.teamspace or "default"
        return HandoffDrafted(id, sender, command.recipient, command.package, teamspace)
    return HandoffDrafted(
        id,
        sender,
        command.recipient or known.recipient,
        {**known.package, **command.package},
        command.teamspace or known.teamspace,
    )


def _is_same(known: Handoff, event: HandoffDrafted) -> bool:
    return (known.recipient, known.package, known.teamspace) == (
        event.recipient,
        event.package,
        event.teamspace,
    )


def check_draft(known: Handoff, actor: Actor) -> Refusal | None:
    if known.sender != actor.name:
        return taken(known.id)
    if known.status != "draft":
        return Refusal("already_exists", f"there is a handoff {known.id} already")
    return None


def taken(id: str) -> Refusal:
    """Refusal of an id that somebody else uses; it reveals no more than that."""
    return Refusal("not_authorized", f"the id {id} is taken: choose another")
