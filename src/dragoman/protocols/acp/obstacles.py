"""What a handoff would meet at its next step that no entry tells, for whoever asks why it waits."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dragoman.core.events import HandoffStatus
from dragoman.core.states.handoff import Handoff
from dragoman.protocols.acp.gate import artifacts_of, check_copies, policy_failures, wrong_with
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import lacks


def obstacles(handoff: Handoff, choices: Choices) -> tuple[str, ...]:
    """A sentence each; none: nothing is in its way that can be seen from here."""
    find = _BEFORE.get(handoff.status)
    return () if find is None else tuple(find(handoff, choices))


def _offer(draft: Handoff, choices: Choices) -> Iterator[str]:
    yield from lacks(draft)
    yield from (detail for _, detail in policy_failures(draft.package, choices))


def _gate(handoff: Handoff, choices: Choices) -> Iterator[str]:
    wanted = [one for one in artifacts_of(handoff) if one.artifact_id not in handoff.left_out]
    yield from wrong_with(wanted, handoff.teamspace, choices)


def _beginning(handoff: Handoff, choices: Choices) -> Iterator[str]:
    wrong = check_copies(handoff, choices.artifacts)
    if wrong is not None:
        yield wrong[1]


_BEFORE: Final[Mapping[HandoffStatus, Callable[[Handoff, Choices], Iterator[str]]]] = {
    "draft": _offer,
    "proposed": _gate,
    "validating": _gate,
    "accepted": _beginning,
}
"""State -> what is looked at before it can be left."""
