"""What of a handoff no entry tells: files that are not there, parts that a draft lacks, and where
the items of a work queue outside are by now. Looked at for whoever asks why it waits."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dragoman.core.actors import Actor
from dragoman.core.events import HandoffStatus
from dragoman.core.states.handoff import Handoff
from dragoman.engine.handing_on import items_in_place_outside
from dragoman.engine.operation import Facts, HandoffFindings
from dragoman.engine.reads.ask import find_agent
from dragoman.protocols.acp.gate import (
    check_verified_copies,
    package_artifacts,
    policy_failures,
    verify_files,
)
from dragoman.protocols.acp.query import proposal_refusals
from dragoman.protocols.acp.read import ActionCall
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import draft_faults, draft_offer
from dragoman.protocols.acp.workq_outside import external_workq


def diagnose(handoff: Handoff, facts: Facts, choices: Choices) -> HandoffFindings:
    """Diagnose a handoff: missing files, parts that a draft lacks, where items of an external queue
    are.
    """
    find_obstacles, external = _OBSTACLE_FINDERS.get(handoff.status), external_workq(choices)
    return HandoffFindings(
        () if find_obstacles is None else tuple(find_obstacles(handoff, facts, choices)),
        tuple(_artifact_obstacles(handoff, facts, choices)) if handoff.status == "draft" else (),
        {} if external is None else items_in_place_outside(external, handoff),
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
