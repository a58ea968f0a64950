"""Questions about handoffs: those that fit, one of them, and what a draft still lacks."""

from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal
from dragoman.core.handoff import Handoff
from dragoman.engine.handoffs import Wanted, find_handoff, page_of
from dragoman.engine.mailbox import LAST
from dragoman.engine.operation import Facts, Fault
from dragoman.engine.shown_handoffs import handoff_summary, whole_handoff
from dragoman.engine.teamspaces import closed_to
from dragoman.protocols.acp.actions import Query
from dragoman.protocols.acp.errors import CODES
from dragoman.protocols.acp.gate import foreseen, policy_failures
from dragoman.protocols.acp.read import Asked
from dragoman.protocols.acp.reply import Reply, denied, with_metadata
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import drafted, lacks


def answer(asked: Asked, actor: Actor, facts: Facts, choices: Choices) -> Any:
    """What is known; None when nothing is asked."""
    if asked.action == "query":
        return _query(asked.given, actor, facts, choices)
    if asked.action == "validate":
        return _validate(asked.given.handoff_id, actor, facts, choices)
    return None


def _query(asked: Query, actor: Actor, facts: Facts, choices: Choices) -> Any:
    if asked.handoff_id:
        return _one(asked.handoff_id, actor, facts, choices)
    wanted = Wanted(
        status=None if asked.status is UNSET else asked.status,
        task=asked.task_id,
        sender=asked.from_agent,
        recipient=asked.to_agent,
        teamspace=asked.teamspace_id,
        reader=actor.name,
        closed=closed_to(choices.teamspaces, actor),
        before=LAST if asked.cursor is UNSET else asked.cursor,
        limit=asked.limit,
    )
    page = page_of(facts.store, wanted)
    if isinstance(page, Refusal):
        return Fault(page.code, page.detail)
    return {
        "success": True,
        "handoffs": [msgspec.to_builtins(handoff_summary(one)) for one in page.handoffs],
        "cursor": page.next,
    }


def _one(id: str, actor: Actor, facts: Facts, choices: Choices) -> Any:
    closed = closed_to(choices.teamspaces, actor)
    found = find_handoff(facts.store, id, actor.name, closed)
    if isinstance(found, Refusal):
        return Fault(found.code, found.detail)
    return {
        "success": True,
        "handoff_id": found.id,
        "status": found.status,
        "handoffs": [msgspec.to_builtins(whole_handoff(found))],
        "cursor": None,
    }


def _validate(id: str, actor: Actor, facts: Facts, choices: Choices) -> Reply | Fault:
    found = find_handoff(facts.store, id, actor.name)
    known = found if isinstance(found, Handoff) else None
    offer = drafted(id, known, actor)
    reply: Reply = {"success": True, "handoff_id": id, "status": "draft"}
    if isinstance(offer, Fault):
        if offer.code != "schema_invalid":
            return offer
        assert known is not None, "what is not there is not read"
        metadata = {"verification_passed": [], "verification_failed": lacks(known)}
        return {**denied(reply, CODES[offer.code], offer.detail), "metadata": metadata}
    failed = [detail for _, detail in policy_failures(offer.said, choices)]
    passed = ["schema"] if failed else ["schema", "policy"]
    told = {**reply, "metadata": {"verification_passed": passed, "verification_failed": failed}}
    if warnings := foreseen(offer.given.artifacts, offer.given.teamspace_id, choices):
        told = with_metadata(told, warnings=warnings)
    return denied(told, "policy_violation", failed[0]) if failed else told
