"""Questions about handoffs: those that fit, one of them, and what a draft still lacks."""

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import UNSET

from dragoman.core.actors import Actor
from dragoman.core.commands import ProposeHandoff
from dragoman.core.deciding.handoffs.offer import (
    check_last,
    check_old,
    check_shape,
    check_stated,
    in_full,
)
from dragoman.core.errors import Refusal
from dragoman.core.ids import is_task_name
from dragoman.core.rules.handoff_chain import (
    chain_of,
    check_cycle,
    check_owner,
    may_go_back,
    owner_of,
)
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.task import Task
from dragoman.engine.faults import Fault, fault_of
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import Wanted, find_handoff, known_handoff, page_of
from dragoman.engine.reads.mailbox import LAST
from dragoman.engine.reads.teamspaces import closed_to
from dragoman.engine.shown.handoffs import handoff_summary, whole_handoff
from dragoman.protocols.acp.actions import Initiate, Query
from dragoman.protocols.acp.errors import CODES
from dragoman.protocols.acp.gate import policy_failures
from dragoman.protocols.acp.read import Asked
from dragoman.protocols.acp.reply import Reply, denied, with_metadata
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.teamspace import is_hidden
from dragoman.protocols.acp.translate import drafted, initiate, lacks


def answer(asked: Asked, actor: Actor, facts: Facts, choices: Choices) -> Any:
    """Answer a query; None if the action is none."""
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
        return fault_of(page)
    return {
        "success": True,
        "handoffs": [msgspec.to_builtins(handoff_summary(one)) for one in page.handoffs],
        "cursor": page.next,
    }


def _one(id: str, actor: Actor, facts: Facts, choices: Choices) -> Any:
    closed = closed_to(choices.teamspaces, actor)
    found = find_handoff(facts.store, id, actor.name, closed)
    if isinstance(found, Refusal):
        return fault_of(found)
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
    refused = list(refusals(offer, actor, facts, choices))
    unfit = [detail for _, detail in policy_failures(offer.said, choices)]
    passed = [] if refused else ["schema"] if unfit else ["schema", "policy"]
    failed = list(dict.fromkeys((*(no.detail for no in refused), *unfit)))
    told = {**reply, "metadata": {"verification_passed": passed, "verification_failed": failed}}
    if offer.warnings:
        told = with_metadata(told, warnings=offer.warnings)
    if unfit:
        return denied(told, "policy_violation", unfit[0])
    return denied(told, CODES[refused[0].code], refused[0].detail) if refused else told


def refusals(
    offer: Asked, actor: Actor, facts: Facts, choices: Choices
) -> Iterator[Refusal | Fault]:
    """Refusals that the package would get if it were proposed now."""
    given: Initiate = offer.given
    made = initiate(offer, None, actor, facts, choices)
    if isinstance(made, Fault):
        yield made
    elif wrong := check_shape(cast(ProposeHandoff, made[-1]), actor):
        yield wrong
    name = given.task.task_id
    if not is_task_name(name):
        yield Refusal("invalid_id", f"task.task_id: {name[:40]!a} is not the name of a task")
    found = find_task(facts.store, name)
    task = None if isinstance(found, Refusal) else found.task
    find = partial(known_handoff, facts.store)
    old = find(given.supersedes) if given.supersedes else None
    old = None if old is None or is_hidden(old, actor, choices) else old
    chain = (actor.name,) if task is None else chain_of(task, owner_of(task, actor.name))
    goes_back = may_go_back(chain, given.to_agent, old, find)
    later = (
        None if isinstance(made, Fault) else _wrong_hash(made, task, actor, chain),
        task and check_old(given.supersedes, old, task),
        task and check_owner(task, old, actor, find),
        check_last(old, find),
        check_cycle(chain, given.to_agent, goes_back=goes_back),
    )
    yield from filter(None, later)


def _wrong_hash(
    made: Commands, task: Task | None, actor: Actor, chain: tuple[str, ...]
) -> Refusal | None:
    """Check a hash that the package states."""
    offer = cast(ProposeHandoff, made[-1])
    _, package_hash = in_full(offer, offer.id, task, actor, chain)
    return check_stated(offer, package_hash)
