"""Diagnose a handoff: what it would be refused for now, and what keeps it from its next state."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, cast

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.handoff.ownership import (
    check_may_hand_over,
    check_ownership_cycle,
    current_owner,
    may_offer_back,
    owner_chain,
)
from dragoman.core.handoff.propose import (
    check_not_superseded,
    check_proposal,
    check_stated_hash,
    check_superseded,
    finalize_package,
)
from dragoman.core.handoff.state import Handoff, HandoffStatus, ProposeHandoff
from dragoman.core.ids import is_task_name
from dragoman.core.task_state import Task
from dragoman.engine.operation import Facts, Fault, HandoffFindings
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.handoffs import find_handoff, load_handoff
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Commands
from dragoman.protocols.acp.errors import REFUSAL_CODES
from dragoman.protocols.acp.gate_checks import (
    check_verified_copies,
    package_artifacts,
    policy_failures,
    verify_files,
)
from dragoman.protocols.acp.parse import ActionCall
from dragoman.protocols.acp.render import Reply, add_metadata, as_failure
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import draft_faults, draft_offer, initiate_commands, is_hidden
from dragoman.protocols.acp.wire import Initiate

# --- validate a draft -------------------------------------------------------------------------


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


# --- obstacles --------------------------------------------------------------------------------


def diagnose(handoff: Handoff, facts: Facts, choices: Choices) -> HandoffFindings:
    """Diagnose a handoff: missing files, and parts that a draft lacks."""
    find_obstacles = _OBSTACLE_FINDERS.get(handoff.status)
    return HandoffFindings(
        () if find_obstacles is None else tuple(find_obstacles(handoff, facts, choices)),
        tuple(_artifact_obstacles(handoff, facts, choices)) if handoff.status == "draft" else (),
    )


def _draft_obstacles(draft: Handoff, facts: Facts, choices: Choices) -> Iterator[str]:
    """Parts that a draft lacks, values that are not permitted, and further refusals that it would
    get.
    """
    yield from draft_faults(draft)
    yield from (detail for _, detail in policy_failures(draft.package, choices))
    known = find_agent(facts.store, draft.sender)
    # An unknown sender may be the person at the keyboard: it is checked as one.
    sender = Actor(known.role if known else "human", draft.sender)
    offer = draft_offer(draft.id, draft, sender)
    if isinstance(offer, ActionCall):
        yield from (refusal.detail for refusal in proposal_refusals(offer, sender, facts, choices))


def _artifact_obstacles(handoff: Handoff, _: Facts, choices: Choices) -> Iterator[str]:
    """Failures that the gate would find; an offer is not refused for them, because files may
    follow.
    """
    artifacts = [
        one for one in package_artifacts(handoff) if one.artifact_id not in handoff.left_out
    ]
    yield from verify_files(artifacts, handoff.teamspace, choices)


def _activation_obstacles(handoff: Handoff, _: Facts, choices: Choices) -> Iterator[str]:
    failure = check_verified_copies(handoff, choices.artifacts)
    if failure is not None:
        yield failure[1]


_OBSTACLE_FINDERS: Final[
    Mapping[HandoffStatus, Callable[[Handoff, Facts, Choices], Iterator[str]]]
] = {
    "draft": _draft_obstacles,
    "proposed": _artifact_obstacles,
    "validating": _artifact_obstacles,
    "accepted": _activation_obstacles,
}
"""State -> function that finds the obstacles to the next state."""
