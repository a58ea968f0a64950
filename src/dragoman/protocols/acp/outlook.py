"""What of a handoff no entry tells: files that are not there, parts that a draft lacks, and where
the items of a work queue outside are by now. Looked at for whoever asks why it waits."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dragoman.core.actors import Actor
from dragoman.core.events import HandoffStatus
from dragoman.core.states.handoff import Handoff
from dragoman.engine.handing_on import seen_outside
from dragoman.engine.operation import Facts, Outlook
from dragoman.engine.reads.ask import find_agent
from dragoman.protocols.acp.gate import artifacts_of, check_copies, policy_failures, wrong_with
from dragoman.protocols.acp.query import refusals
from dragoman.protocols.acp.read import Asked
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import drafted, lacks
from dragoman.protocols.acp.workq_outside import outside_of


def outlook(handoff: Handoff, facts: Facts, choices: Choices) -> Outlook:
    """Diagnose a handoff: missing files, parts that a draft lacks, where items of an external queue
    are.
    """
    find, queue = _BEFORE.get(handoff.status), outside_of(choices)
    return Outlook(
        () if find is None else tuple(find(handoff, facts, choices)),
        tuple(_files(handoff, facts, choices)) if handoff.status == "draft" else (),
        {} if queue is None else seen_outside(queue, handoff),
    )


def _offer(draft: Handoff, facts: Facts, choices: Choices) -> Iterator[str]:
    """Parts that a draft lacks, values that are not permitted, and further refusals that it would
    get.
    """
    yield from lacks(draft)
    yield from (detail for _, detail in policy_failures(draft.package, choices))
    known = find_agent(facts.store, draft.sender)
    # An unknown sender may be the person at the keyboard: it is checked as one.
    sender = Actor(known.role if known else "human", draft.sender)
    offer = drafted(draft.id, draft, sender)
    if isinstance(offer, Asked):
        yield from (no.detail for no in refusals(offer, sender, facts, choices))


def _files(handoff: Handoff, _: Facts, choices: Choices) -> Iterator[str]:
    """Failures that the gate would find; an offer is not refused for them, because files may
    follow.
    """
    wanted = [one for one in artifacts_of(handoff) if one.artifact_id not in handoff.left_out]
    yield from wrong_with(wanted, handoff.teamspace, choices)


def _beginning(handoff: Handoff, _: Facts, choices: Choices) -> Iterator[str]:
    wrong = check_copies(handoff, choices.artifacts)
    if wrong is not None:
        yield wrong[1]


_BEFORE: Final[Mapping[HandoffStatus, Callable[[Handoff, Facts, Choices], Iterator[str]]]] = {
    "draft": _offer,
    "proposed": _files,
    "validating": _files,
    "accepted": _beginning,
}
"""State -> function that finds the obstacles to the next state."""
