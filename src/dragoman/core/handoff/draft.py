"""Draft a handoff, and discard a draft. A draft is visible only to its sender."""

from dragoman.core.actor import Actor
from dragoman.core.authority import check_write
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import (
    find_visible_handoff as handoff_of,
)
from dragoman.core.handoff.common import (
    handoff_decision,
    wrong_state_refusal,
)
from dragoman.core.handoff.state import (
    DiscardDraft,
    DraftHandoff,
    Handoff,
    HandoffDiscarded,
    HandoffDrafted,
)
from dragoman.core.ids import check_agent, check_id
from dragoman.core.limits import check_json
from dragoman.core.read import Decision, Read

# --- drafts -----------------------------------------------------------------------------------


def decide_draft(command: DraftHandoff, read: Read, now: int) -> Decision | Refusal:
    """Create a draft, or update parts of it; a part that is given replaces that part.

    Parts are merged here, in the transaction, so that concurrent updates of different parts all
    last.
    """
    del now
    id = command.id or read.cause
    existing = read.handoff(id)
    refusal = (
        check_write(read.actor)
        or check_id(id, "handoff id")
        or (check_agent(command.recipient) if command.recipient else None)
        or (check_id(command.teamspace, "teamspace") if command.teamspace else None)
        or check_json("package", command.package)
        or (check_draft_writable(existing, read.actor) if existing else None)
    )
    if refusal:
        return refusal
    event = _merge_parts(existing, command, id, read.actor.name)
    if existing is not None and not existing.is_discarded and _is_unchanged(existing, event):
        return handoff_decision(id, "draft")
    return check_json("package", event.package) or handoff_decision(id, "draft", event)


def decide_discard(command: DiscardDraft, read: Read, now: int) -> Decision | Refusal:
    """Discard a draft; what was proposed already is withdrawn instead."""
    del now
    existing = read.handoff(command.id)
    if existing is not None and existing.is_discarded and existing.sender == read.actor.name:
        return check_write(read.actor) or handoff_decision(command.id, "discarded")
    draft = handoff_of(command.id, read)
    if isinstance(draft, Refusal):
        return draft
    if draft.status != "draft":
        return wrong_state_refusal(draft, ("draft",), "discard")
    return handoff_decision(command.id, "discarded", HandoffDiscarded(read.actor.name))


def _merge_parts(
    existing: Handoff | None, command: DraftHandoff, id: str, sender: str
) -> HandoffDrafted:
    """Event that merges the given parts into the draft."""
    if existing is None or existing.is_discarded:
        teamspace = command.teamspace or "default"
        return HandoffDrafted(id, sender, command.recipient, command.package, teamspace)
    return HandoffDrafted(
        id,
        sender,
        command.recipient or existing.recipient,
        {**existing.package, **command.package},
        command.teamspace or existing.teamspace,
    )


def _is_unchanged(existing: Handoff, event: HandoffDrafted) -> bool:
    return (existing.recipient, existing.package, existing.teamspace) == (
        event.recipient,
        event.package,
        event.teamspace,
    )


def check_draft_writable(existing: Handoff, actor: Actor) -> Refusal | None:
    if existing.sender != actor.name:
        return id_in_use_refusal(existing.id)
    if existing.status != "draft":
        return Refusal("already_exists", f"there is a handoff {existing.id} already")
    return None


def id_in_use_refusal(id: str) -> Refusal:
    """Refusal of an id that somebody else uses; it reveals no more than that."""
    return Refusal("not_authorized", f"the id {id} is taken: choose another")
