"""Questions about handoffs: those that fit, one of them, and what a draft still lacks."""

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import UNSET

from dragoman.core.actors import Actor
from dragoman.core.commands import ProposeHandoff
from dragoman.core.deciding.handoffs.offer import (
    check_not_superseded,
    check_proposal,
    check_stated_hash,
    check_superseded,
    finalize_package,
)
from dragoman.core.errors import Refusal
from dragoman.core.ids import is_task_name
from dragoman.core.rules.handoff_chain import (
    check_may_hand_over,
    check_ownership_cycle,
    current_owner,
    may_offer_back,
    owner_chain,
)
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.task import Task
from dragoman.engine.faults import Fault, fault_from_refusal
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import HandoffFilter, find_handoff, handoff_page, load_handoff
from dragoman.engine.reads.mailbox import END_OF_LIST
from dragoman.engine.reads.teamspaces import hidden_teamspaces
from dragoman.engine.shown.handoffs import handoff_detail, handoff_summary
from dragoman.protocols.acp.actions import Initiate, Query
from dragoman.protocols.acp.errors import REFUSAL_CODES
from dragoman.protocols.acp.gate import policy_failures
from dragoman.protocols.acp.read import ActionCall
from dragoman.protocols.acp.reply import Reply, add_metadata, as_failure
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.teamspace import is_hidden
from dragoman.protocols.acp.translate import draft_faults, draft_offer, initiate_commands


def answer_query(call: ActionCall, actor: Actor, facts: Facts, choices: Choices) -> Any:
    """Answer a query; None if the action is none."""
    if call.action == "query":
        return _list_handoffs(call.arguments, actor, facts, choices)
    if call.action == "validate":
        return validate_draft(call.arguments.handoff_id, actor, facts, choices)
    return None


def _list_handoffs(call: Query, actor: Actor, facts: Facts, choices: Choices) -> Any:
    if call.handoff_id:
        return _show_handoff(call.handoff_id, actor, facts, choices)
    filters = HandoffFilter(
        status=None if call.status is UNSET else call.status,
        task=call.task_id,
        sender=call.from_agent,
        recipient=call.to_agent,
        teamspace=call.teamspace_id,
        reader=actor.name,
        hidden_teamspaces=hidden_teamspaces(choices.teamspaces, actor),
        before=END_OF_LIST if call.cursor is UNSET else call.cursor,
        limit=call.limit,
    )
    page = handoff_page(facts.store, filters)
    if isinstance(page, Refusal):
        return fault_from_refusal(page)
    return {
        "success": True,
        "handoffs": [msgspec.to_builtins(handoff_summary(one)) for one in page.handoffs],
        "cursor": page.next,
    }


def _show_handoff(id: str, actor: Actor, facts: Facts, choices: Choices) -> Any:
    closed = hidden_teamspaces(choices.teamspaces, actor)
    found = find_handoff(facts.store, id, actor.name, closed)
    if isinstance(found, Refusal):
        return fault_from_refusal(found)
    return {
        "success": True,
        "handoff_id": found.id,
        "status": found.status,
        "handoffs": [msgspec.to_builtins(handoff_detail(found))],
        "cursor": None,
    }


def validate_draft(id: str, actor: Actor, facts: Facts, choices: Choices) -> Reply | Fault:
    found = find_handoff(facts.store, id, actor.name)
    known = found if isinstance(found, Handoff) else None
    offer = draft_offer(id, known, actor)
    reply: Reply = {"success": True, "handoff_id": id, "status": "draft"}
    if isinstance(offer, Fault):
        if offer.code != "schema_invalid":
            return offer
        assert known is not None, "what is not there is not read"
        metadata = {"verification_passed": [], "verification_failed": draft_faults(known)}
        return {**as_failure(reply, REFUSAL_CODES[offer.code], offer.detail), "metadata": metadata}
    refused = list(proposal_refusals(offer, actor, facts, choices))
    policy_details = [detail for _, detail in policy_failures(offer.filled, choices)]
    passed = [] if refused else ["schema"] if policy_details else ["schema", "policy"]
    failed = list(dict.fromkeys((*(no.detail for no in refused), *policy_details)))
    answer = {**reply, "metadata": {"verification_passed": passed, "verification_failed": failed}}
    if offer.warnings:
        answer = add_metadata(answer, warnings=offer.warnings)
    if policy_details:
        return as_failure(answer, "policy_violation", policy_details[0])
    return (
        as_failure(answer, REFUSAL_CODES[refused[0].code], refused[0].detail) if refused else answer
    )


def proposal_refusals(
    offer: ActionCall, actor: Actor, facts: Facts, choices: Choices
) -> Iterator[Refusal | Fault]:
    """Refusals that the package would get if it were proposed now."""
    arguments: Initiate = offer.arguments
    commands = initiate_commands(offer, None, actor, facts, choices)
    if isinstance(commands, Fault):
        yield commands
    elif refusal := check_proposal(cast(ProposeHandoff, commands[-1]), actor):
        yield refusal
    name = arguments.task.task_id
    if not is_task_name(name):
        yield Refusal("invalid_id", f"task.task_id: {name[:40]!a} is not the name of a task")
    found = find_task(facts.store, name)
    task = None if isinstance(found, Refusal) else found.task
    find = partial(load_handoff, facts.store)
    old = find(arguments.supersedes) if arguments.supersedes else None
    old = None if old is None or is_hidden(old, actor, choices) else old
    chain = (actor.name,) if task is None else owner_chain(task, current_owner(task, actor.name))
    goes_back = may_offer_back(chain, arguments.to_agent, old, find)
    checks = (
        None if isinstance(commands, Fault) else _check_offer_hash(commands, task, actor, chain),
        task and check_superseded(arguments.supersedes, old, task),
        task and check_may_hand_over(task, old, actor, find),
        check_not_superseded(old, find),
        check_ownership_cycle(chain, arguments.to_agent, is_offered_back=goes_back),
    )
    yield from filter(None, checks)


def _check_offer_hash(
    commands: Commands, task: Task | None, actor: Actor, chain: tuple[str, ...]
) -> Refusal | None:
    """Check a hash that the package states."""
    offer = cast(ProposeHandoff, commands[-1])
    _, package_hash = finalize_package(offer, offer.id, task, actor, chain)
    return check_stated_hash(offer, package_hash)
