"""What whoever is told no can do about a handoff instead.

Each way is tried before it is named, so that none is named which the hub would refuse as well.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    DiscardDraft,
    ExtendHandoff,
    HandoffCommand,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.errors import Refusal
from dragoman.core.limits import WAIT_MS
from dragoman.core.reading import Decision, Read
from dragoman.core.states.handoff import LEGAL, Handoff

if TYPE_CHECKING:
    from dragoman.core.commands import AnyCommand

Ask = Callable[["AnyCommand"], Decision | Refusal]
"""Decides another command for the same caller, without recording it."""

Asked = Callable[[Handoff, str], "AnyCommand"]
"""Makes the command of an action from a handoff and the name of an uninvolved agent."""

ACCEPTANCE: Final[dict[str, Asked]] = {
    "accept": lambda handoff, _: AcceptHandoff(handoff.id, handoff.package_hash),
}
APPROVAL: Final[dict[str, Asked]] = {
    "approve": lambda handoff, _: ApproveHandoff(handoff.id),
    "deny": lambda handoff, _: ApproveHandoff(handoff.id, is_yes=False),
}
"""In place of acceptance, which would only wait for a person's approval."""
WAYS: Final[dict[str, Asked]] = {
    "activate": lambda handoff, _: ActivateHandoff(handoff.id),
    "complete": lambda handoff, _: CompleteHandoff(handoff.id),
    "reject": lambda handoff, _: RejectHandoff(handoff.id, "other", "tried"),
    "withdraw": lambda handoff, _: WithdrawHandoff(handoff.id),
    "extend_sla": lambda handoff, _: ExtendHandoff(handoff.id, WAIT_MS[0]),
    "reassign": lambda handoff, somebody: ReassignHandoff(handoff.id, somebody),
    "close": lambda handoff, _: CloseHandoff(handoff.id),
}
_TOLD: Final = {"extend_sla": "extend_sla (on the command line: extend)"}
"""Action -> its label, if the command line calls it otherwise."""


def with_ways(refusal: Refusal, command: "AnyCommand", read: Read, ask: Ask) -> Refusal:
    """Extend the refusal of a command in the wrong state by the actions that the caller can take
    now.
    """
    if refusal.code != "invalid_transition":
        return refusal
    handoff = _asked_about(command, read)
    if handoff is None:
        return refusal
    open_ways = LEGAL["draft"] if handoff.status == "draft" else _ways(handoff, read, ask)
    name = read.actor.name
    then = f"what {name} can do now is {', '.join(open_ways)}"
    if not open_ways:
        is_final = handoff.status == "closed"
        then = "it is final" if is_final else f"nothing is left for {name} to do about {handoff.id}"
    return Refusal(refusal.code, f"{refusal.detail}; {then}", refusal.kind)


def _asked_about(command: "AnyCommand", read: Read) -> Handoff | None:
    if isinstance(command, DiscardDraft):
        return read.handoff(command.id)
    return read.handoff(command.handoff) if isinstance(command, HandoffCommand) else None


def _ways(handoff: Handoff, read: Read, ask: Ask) -> tuple[str, ...]:
    ways = {**(APPROVAL if handoff.awaits_approval else ACCEPTANCE), **WAYS}
    answers = {action: ask(asked(handoff, read.cause)) for action, asked in ways.items()}
    return tuple(
        _TOLD.get(action, action) for action, answer in answers.items() if _leads_on(answer)
    )


def _leads_on(answer: Decision | Refusal) -> bool:
    """Return whether an outcome changes something; a duplicate does not."""
    return isinstance(answer, Decision) and answer.refusal is None and bool(answer.events)
