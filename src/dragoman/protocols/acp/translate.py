"""What an action leads to: commands, after all that has to be looked at outside is looked at."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    AdoptTask,
    AnyCommand,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    DiscardDraft,
    DraftHandoff,
    ExtendHandoff,
    Failure,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.deciding.handoffs.drafting import taken
from dragoman.core.moments import parse_duration
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_package import mark_of
from dragoman.engine.faults import Fault, fault_of
from dragoman.engine.operation import Commands, Facts
from dragoman.engine.reads.handoffs import find_handoff, was_drafted
from dragoman.protocols.acp.actions import (
    Accept,
    Activate,
    Approve,
    Close,
    Complete,
    Draft,
    ExtendSla,
    Initiate,
    OnHandoff,
    Reassign,
    Reject,
    Withdraw,
)
from dragoman.protocols.acp.doubts import doubts_about, doubts_about_task, doubts_about_times
from dragoman.protocols.acp.gate import (
    PASSING,
    artifacts_of,
    check_copies,
    examine,
    foreseen,
    wrong_with,
)
from dragoman.protocols.acp.package import composed, due_at_of, hash_as_given, offer_faults
from dragoman.protocols.acp.read import Asked, read_action
from dragoman.protocols.acp.reply import TRY_AGAIN
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.teamspace import is_hidden, outsider

KIND: Final = "acp"
"""Kind of alias for tasks that ACP created."""

_NOT_KEPT: Final = frozenset({"action", "handoff_id", "to_agent", "teamspace_id", "from_agent"})
"""Arguments of a draft that are no part of its package."""


def commands(asked: Asked, actor: Actor, facts: Facts, choices: Choices) -> Commands | Fault:
    """Translate an action to commands."""
    if actor.role not in MAY_WRITE:
        return Fault("not_authorized", f"{actor.label} may look handoffs up, and nothing else")
    known = _known(asked.given, facts) if is_looked_up(asked, choices) else None
    if known is not None and is_hidden(known, actor, choices):
        # Reveal no more of it than of one that does not exist, or of another's draft.
        is_begun = asked.action in _BEGINS
        return fault_of(taken(known.id) if is_begun else missing.handoff(known.id))
    if known is not None:
        asked.seen.append(known)
    return _COMMANDS[asked.action](asked, known, actor, facts, choices)


_LOOKED_UP: Final = frozenset({"draft", "propose", "accept", "activate"})
"""Actions whose translation depends on the state of the handoff."""


_BEGINS: Final = frozenset({"initiate", "draft"})
"""Actions whose caller may choose the id of a handoff."""


def is_looked_up(asked: Asked, choices: Choices) -> bool:
    """Return whether the handoff must be read before the action is translated."""
    is_delivery = asked.action == "complete" and bool(asked.given.final_artifacts)
    return asked.action in _LOOKED_UP or is_delivery or bool(choices.teamspaces)


def _known(given: Any, facts: Facts) -> Handoff | None:
    found = find_handoff(facts.store, given.handoff_id) if given.handoff_id else None
    return found if isinstance(found, Handoff) else None


# Draft, propose and initiate


def _draft(
    asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
) -> Commands | Fault:
    """Write a draft; a part that is given replaces that part."""
    del facts
    given: Draft = asked.given
    new = {key: value for key, value in asked.said.items() if key not in _NOT_KEPT}
    teamspace = given.teamspace_id or (known.teamspace if known else "default")
    is_elsewhere = known is None or known.teamspace != teamspace
    if is_elsewhere and (stranger := outsider(teamspace, actor, choices)):
        return stranger
    return (DraftHandoff(new, given.handoff_id, given.to_agent, given.teamspace_id),)


def _propose(
    asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
) -> Commands | Fault:
    """Propose a draft as it stands; one that was proposed already is not proposed again."""
    if known and known.sender == actor.name and was_drafted(facts.store, known):
        return (_offered(known),)
    offer = drafted(asked.given.handoff_id, known, actor)
    if isinstance(offer, Fault):
        return offer
    made = initiate(offer, known, actor, facts, choices)
    asked.warnings.extend(offer.warnings)
    if known is None or isinstance(made, Fault):
        return made
    *before, last = made
    return (*before, replace(cast(ProposeHandoff, last), drafted=mark_of(known)))


def _offered(known: Handoff) -> ProposeHandoff:
    """The proposal that created this handoff."""
    return ProposeHandoff(
        task=known.task,
        recipient=known.recipient,
        package=known.package,
        id=known.id,
        title=known.title,
        reason=known.reason,
        thread=known.thread,
        teamspace=known.teamspace,
        supersedes=known.supersedes,
        sla_ms=known.sla_ms,
        due_at=known.due_at,
    )


def drafted(id: str, known: Handoff | None, actor: Actor) -> Asked | Fault:
    """The offer that a draft would make, or its faults."""
    if known is None or known.sender != actor.name:
        return fault_of(missing.handoff(id))
    if known.status != "draft":
        return Fault("invalid_transition", f"{known.id} is {known.status}, and no draft")
    read = read_action(_words_of(known))
    return Fault(read.code, "; ".join(lacks(known))) if isinstance(read, Fault) else read


def lacks(draft: Handoff) -> list[str]:
    """Everything that is missing or wrong in a draft, one sentence each."""
    return [fault.detail for fault in offer_faults(_words_of(draft))]


def _words_of(draft: Handoff) -> dict[str, Any]:
    """A draft as the arguments of an initiate."""
    outside = {"to_agent": draft.recipient, "teamspace_id": draft.teamspace}
    unsaid = {"to_agent": "", "teamspace_id": "default"}
    return {
        "action": "initiate",
        "handoff_id": draft.id,
        **{name: said for name, said in outside.items() if said != unsaid[name]},
        **draft.package,
    }


def initiate(
    asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
) -> Commands | Fault:
    """Translate an offer to commands."""
    given: Initiate = asked.given
    del known
    teamspace = _teamspace_of(asked, actor, facts, choices)
    if isinstance(teamspace, Fault):
        return teamspace
    for name in (actor, given.to_agent):
        if stranger := outsider(teamspace, name, choices):
            return stranger
    stated = given.verification.package_hash or ""
    is_as_given = bool(stated) and stated == hash_as_given(asked.words)
    own = {stage: parse_duration(span) for stage, span in given.sla.by_stage.items()}
    package = composed(asked.said)
    if secret := choices.secret_in(package):
        return fault_of(secret)
    asked.warnings.extend(doubts_about(given.to_agent, actor, facts.store))
    asked.warnings.extend(doubts_about_task(given.task.task_id, facts.store))
    asked.warnings.extend(foreseen(given.artifacts, teamspace, choices))
    due_at = due_at_of(given)
    asked.warnings.extend(doubts_about_times(given, due_at, facts.now()))
    offer = ProposeHandoff(
        task=given.task.task_id,
        recipient=given.to_agent,
        package=package,
        id=given.handoff_id,
        title=given.task.title,
        reason=given.reason,
        thread=given.thread_id,
        teamspace=teamspace,
        stated_hash="" if is_as_given else stated,
        supersedes=given.supersedes,
        sla_ms={**choices.sla_ms, **own},
        due_at=due_at,
    )
    return (*_adopted(given, actor, facts, choices), offer)


def _teamspace_of(asked: Asked, actor: Actor, facts: Facts, choices: Choices) -> str | Fault:
    """Teamspace of an offer; one that supersedes another stays in its teamspace unless it names
    one.
    """
    given: Initiate = asked.given
    found = find_handoff(facts.store, given.supersedes) if given.supersedes else None
    if not isinstance(found, Handoff):
        return given.teamspace_id
    if is_hidden(found, actor, choices):
        return fault_of(missing.handoff(found.id))
    return given.teamspace_id if "teamspace_id" in asked.said else found.teamspace


def _adopted(given: Initiate, actor: Actor, facts: Facts, choices: Choices) -> Commands:
    """An unknown task becomes its sender's task with its first handoff (S-ADOPT)."""
    if not choices.adopt or facts.task_exists(given.task.task_id):
        return ()
    return (
        AdoptTask(
            kind=KIND,
            name=given.task.task_id,
            title=given.task.title,
            review_required=choices.review_required,
            max_attempts=choices.max_attempts,
            owner=actor.name,
        ),
    )


# Accept, activate and complete


def _accept(
    asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
) -> Commands | Fault:
    """Accept; everything outside the ledger is checked, but only for the recipient."""
    del facts
    given: Accept = asked.given
    if known is None or known.recipient != actor.name:
        return (AcceptHandoff(given.handoff_id, "", notes=given.notes),)
    names = {artifact.artifact_id for artifact in artifacts_of(known)}
    for name in given.leave_out:
        if name not in names:
            return Fault(
                "schema_invalid", f"the package has no artifact {name[:80]!a}", "leave_out"
            )
    if known.status not in ("proposed", "validating"):
        is_same = set(given.leave_out) <= set(known.left_out)
        left_out = known.left_out if is_same else given.leave_out
        return (AcceptHandoff(known.id, known.package_hash, left_out=left_out, notes=given.notes),)
    verdict = examine(known, given.leave_out, choices)
    return (
        AcceptHandoff(
            handoff=known.id,
            package_hash=known.package_hash,
            passed=verdict.passed,
            failed=verdict.failed,
            waits_for=verdict.waits_for,
            artifacts=verdict.artifacts,
            left_out=verdict.left_out,
            notes=given.notes,
        ),
    )


def _activate(
    asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
) -> Commands | Fault:
    del facts
    given: Activate = asked.given
    is_due = known is not None and known.status == "accepted" and known.recipient == actor.name
    copies = choices.artifacts
    wrong = check_copies(known, copies, remakes=True) if known is not None and is_due else None
    if wrong is not None and wrong[0] == PASSING:
        return Fault(TRY_AGAIN, f"{wrong[1]}; nothing has changed, activate it again")
    return (
        ActivateHandoff(
            given.handoff_id,
            session=given.session,
            ttl_ms=choices.ttl_ms,
            work_state_update=asked.said.get("work_state_update", {}),
            failed=() if wrong is None else (cast(Failure, wrong),),
        ),
    )


def _complete(
    asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
) -> Commands:
    """Complete; missing final artifacts only cause warnings.

    The work is done all the same, and its reviewer reads the files where they are.
    """
    del facts
    given: Complete = asked.given
    if known is not None and known.status == "activated" and known.recipient == actor.name:
        asked.warnings.extend(wrong_with(given.final_artifacts, known.teamspace, choices))
    return (
        CompleteHandoff(
            given.handoff_id,
            notes=given.completion_notes,
            final_artifacts=tuple(asked.said.get("final_artifacts", ())),
            backoff=choices.backoff,
        ),
    )


# Actions that need only their arguments


def _simple(make: Callable[[Any, Asked, Choices], AnyCommand]) -> Any:
    """Translate an action whose arguments say everything."""

    def made(
        asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
    ) -> Commands:
        del known, actor, facts
        return (make(asked.given, asked, choices),)

    return made


def _extend(given: ExtendSla, _: Asked, __: Choices) -> AnyCommand:
    return ExtendHandoff(given.handoff_id, by_ms=parse_duration(given.by), stage=given.stage)


def _said_by_person(given: Approve, asked: Asked, _: Choices) -> AnyCommand:
    return ApproveHandoff(
        given.handoff_id,
        is_yes=asked.action == "approve",
        package_hash=given.package_hash or "",
        note=given.notes,
    )


def _reject(given: Reject, _: Asked, __: Choices) -> AnyCommand:
    return RejectHandoff(given.handoff_id, given.reason, given.detail, given.suggested_fix)


def _withdraw(given: Withdraw, _: Asked, __: Choices) -> AnyCommand:
    return WithdrawHandoff(given.handoff_id, given.notes)


def _close(given: Close, _: Asked, __: Choices) -> AnyCommand:
    return CloseHandoff(given.handoff_id, given.closure_notes)


def _discard(given: OnHandoff, _: Asked, __: Choices) -> AnyCommand:
    return DiscardDraft(given.handoff_id)


def _reassign(
    asked: Asked, known: Handoff | None, actor: Actor, facts: Facts, choices: Choices
) -> Commands | Fault:
    given: Reassign = asked.given
    if known is not None and (stranger := outsider(known.teamspace, given.to_agent, choices)):
        return stranger
    asked.warnings.extend(doubts_about(given.to_agent, actor, facts.store))
    return (ReassignHandoff(given.handoff_id, given.to_agent, given.notes),)


_Maker = Callable[[Asked, Handoff | None, Actor, Facts, Choices], Commands | Fault]
_COMMANDS: Final[Mapping[str, _Maker]] = {
    "initiate": initiate,
    "draft": _draft,
    "propose": _propose,
    "discard": _simple(_discard),
    "accept": _accept,
    "reject": _simple(_reject),
    "activate": _activate,
    "complete": _complete,
    "close": _simple(_close),
    "withdraw": _simple(_withdraw),
    "extend_sla": _simple(_extend),
    "reassign": _reassign,
    "approve": _simple(_said_by_person),
    "deny": _simple(_said_by_person),
}
"""Action -> its translation; actions that are missing here are queries."""
