"""What of a handoff no entry tells: files that are not there, parts that a draft lacks, and where
the items of a work queue outside are by now. Looked at for whoever asks why it waits."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dragoman.core.events import HandoffStatus
from dragoman.core.states.handoff import Handoff
from dragoman.engine.handing_on import seen_outside
from dragoman.engine.operation import Outlook
from dragoman.protocols.acp.gate import artifacts_of, check_copies, policy_failures, wrong_with
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import lacks
from dragoman.protocols.acp.workq_outside import outside_of


def outlook(handoff: Handoff, choices: Choices) -> Outlook:
    """What can be seen from here."""
    find, queue = _BEFORE.get(handoff.status), outside_of(choices)
    return Outlook(
        () if find is None else tuple(find(handoff, choices)),
        tuple(_files(handoff, choices)) if handoff.status == "draft" else (),
        {} if queue is None else seen_outside(queue, handoff),
    )


def _offer(draft: Handoff, choices: Choices) -> Iterator[str]:
    yield from lacks(draft)
    yield from (detail for _, detail in policy_failures(draft.package, choices))


def _files(handoff: Handoff, choices: Choices) -> Iterator[str]:
    """What the gate would find. It is no reason to refuse an offer: they may be there by then."""
    wanted = [one for one in artifacts_of(handoff) if one.artifact_id not in handoff.left_out]
    yield from wrong_with(wanted, handoff.teamspace, choices)


def _beginning(handoff: Handoff, choices: Choices) -> Iterator[str]:
    wrong = check_copies(handoff, choices.artifacts)
    if wrong is not None:
        yield wrong[1]


_BEFORE: Final[Mapping[HandoffStatus, Callable[[Handoff, Choices], Iterator[str]]]] = {
    "draft": _offer,
    "proposed": _files,
    "validating": _files,
    "accepted": _beginning,
}
"""State -> what is looked at before it can be left."""
