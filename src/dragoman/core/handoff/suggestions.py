"""Suggested next actions for a refused handoff command.

Each action is tried before it is suggested, so that the hub would not refuse it as well.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    ExtendHandoff,
    Handoff,
    HandoffCommand,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.limits import WAIT_RANGE_MS
from dragoman.core.read import Decision, Read

if TYPE_CHECKING:
    from dragoman.core.command_table import AnyCommand

TryCommand = Callable[["AnyCommand"], Decision | Refusal]
"""Decides another command for the same caller, without recording it."""

CommandFactory = Callable[[Handoff, str], "AnyCommand"]
"""Makes the command of an action from a handoff and the name of an uninvolved agent."""

ACCEPT_ACTIONS: Final[dict[str, CommandFactory]] = {
    "accept": lambda handoff, _: AcceptHandoff(handoff.id, handoff.package_hash),
}
APPROVAL_ACTIONS: Final[dict[str, CommandFactory]] = {
    "approve": lambda handoff, _: ApproveHandoff(handoff.id),
    "deny": lambda handoff, _: ApproveHandoff(handoff.id, approved=False),
}
"""In place of acceptance, which would only wait for a person's approval."""
OTHER_ACTIONS: Final[dict[str, CommandFactory]] = {
    "activate": lambda handoff, _: ActivateHandoff(handoff.id),
    "complete": lambda handoff, _: CompleteHandoff(handoff.id),
    "reject": lambda handoff, _: RejectHandoff(handoff.id, "other", "tried"),
    "withdraw": lambda handoff, _: WithdrawHandoff(handoff.id),
    "extend_sla": lambda handoff, _: ExtendHandoff(handoff.id, WAIT_RANGE_MS[0]),
    "reassign": lambda handoff, somebody: ReassignHandoff(handoff.id, somebody),
    "close": lambda handoff, _: CloseHandoff(handoff.id),
}
_ACTION_LABELS: Final = {"extend_sla": "extend_sla (on the command line: extend)"}
"""Action -> its label, if the command line calls it otherwise."""


def suggest_actions(
    refusal: Refusal, command: "AnyCommand", read: Read, try_command: TryCommand
) -> Refusal:
    """Extend the refusal of a command in the wrong state by the actions that the caller can take
    now.
    """
    if refusal.code != "invalid_transition":
        return refusal
    handoff = _handoff_of(command, read)
    if handoff is None:
        return refusal
    actions = _possible_actions(handoff, read, try_command)
    name = read.actor.name
    suggestion = f"what {name} can do now is {', '.join(actions)}"
    if not actions:
        is_final = handoff.status == "closed"
        suggestion = (
            "it is final" if is_final else f"nothing is left for {name} to do about {handoff.id}"
        )
    return Refusal(refusal.code, f"{refusal.detail}; {suggestion}", refusal.kind)


def _handoff_of(command: "AnyCommand", read: Read) -> Handoff | None:
    return read.handoff(command.handoff) if isinstance(command, HandoffCommand) else None


def _possible_actions(handoff: Handoff, read: Read, try_command: TryCommand) -> tuple[str, ...]:
    factories = {
        **(APPROVAL_ACTIONS if handoff.awaits_approval else ACCEPT_ACTIONS),
        **OTHER_ACTIONS,
    }
    answers = {
        action: try_command(make_command(handoff, read.cause))
        for action, make_command in factories.items()
    }
    return tuple(
        _ACTION_LABELS.get(action, action)
        for action, answer in answers.items()
        if _has_effect(answer)
    )


def _has_effect(outcome: Decision | Refusal) -> bool:
    """Return whether an outcome changes something; a duplicate does not."""
    return isinstance(outcome, Decision) and outcome.refusal is None and bool(outcome.events)
