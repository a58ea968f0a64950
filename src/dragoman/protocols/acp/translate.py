"""Translate ACP actions to commands, after everything outside the ledger has been checked."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.base import Command
from dragoman.core.handoff import state as handoff_state
from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.handoff.propose import id_in_use_refusal
from dragoman.core.ids import quote_name
from dragoman.core.task_state import AdoptTask
from dragoman.core.timestamps import parse_duration, parse_rfc3339
from dragoman.engine.operation import Facts, Fault, fault_from_refusal
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.handoffs import find_handoff
from dragoman.engine.queries.visibility import find_reader, handoff_audience, is_closed, is_member
from dragoman.engine.request import Commands
from dragoman.protocols.acp import wire
from dragoman.protocols.acp.gate_checks import (
    TRANSIENT,
    check_verified_copies,
    missing_artifact,
    package_artifacts,
    run_gate,
)
from dragoman.protocols.acp.parse import ActionCall
from dragoman.protocols.acp.render import CONFLICT_RETRY
from dragoman.protocols.acp.settings import Choices

# --- actions ----------------------------------------------------------------------------------

ALIAS_KIND: Final = "acp"
"""Kind of alias for tasks that ACP created."""


def action_commands(
    call: ActionCall, actor: Actor, facts: Facts, choices: Choices
) -> Commands | Fault:
    if actor.role not in MAY_WRITE:
        return Fault("not_authorized", f"{actor.label} may look handoffs up, and nothing else")
    known = _find_known(call.arguments, facts) if needs_handoff(call, choices) else None
    if known is not None and is_hidden(known, actor, choices):
        is_chosen_id = call.action == "initiate"
        return fault_from_refusal(
            id_in_use_refusal(known.id) if is_chosen_id else not_found.handoff(known.id)
        )
    if known is not None:
        call.looked_up.append(known)
    return _ACTION_COMMANDS[call.action](call, known, actor, facts, choices)


_NEEDS_HANDOFF: Final = frozenset({"accept", "activate", "complete"})
"""Actions whose translation depends on the state of the handoff."""


def needs_handoff(call: ActionCall, choices: Choices) -> bool:
    """Return whether the handoff must be read before the action is translated."""
    return call.action in _NEEDS_HANDOFF or bool(choices.teamspaces)


def _find_known(arguments: Any, facts: Facts) -> handoff_state.Handoff | None:
    found = find_handoff(facts.store, arguments.handoff_id) if arguments.handoff_id else None
    return found if isinstance(found, handoff_state.Handoff) else None


# --- teamspaces -------------------------------------------------------------------------------


def is_hidden(handoff: handoff_state.Handoff, actor: Actor, choices: Choices) -> bool:
    """Return whether the caller may not see this handoff."""
    reader = find_reader(actor, choices.teamspaces)
    return not reader.may_read(handoff_audience(handoff))


def check_membership(teamspace: str, party: Actor | str, choices: Choices) -> Fault | None:
    """Check that a caller or an agent belongs to the teamspace."""
    if is_member(choices.teamspaces, teamspace, party):
        return None
    name = party if isinstance(party, str) else party.label
    return Fault("not_authorized", f"{name} does not belong to the teamspace {teamspace}")


# --- warnings ---------------------------------------------------------------------------------


def recipient_warnings(recipient: str, sender: Actor, store: Store) -> Iterator[str]:
    """Warnings about a recipient for whom an offer may wait for ever; it is not refused, because
    names and roles may be registered later.
    """
    known = find_agent(store, recipient)
    if known is not None and known.role not in MAY_WRITE:
        yield f"{recipient} is registered as {known.role}, and can accept nothing"
    yield from unknown_name_warnings(recipient, sender, store)


def unknown_name_warnings(name: str, sender: Actor, store: Store) -> Iterator[str]:
    """Warning if nobody is registered under this name.

    Senders that are not registered themselves get none: among them any name is as good as another.
    """
    if find_agent(store, name) is None and find_agent(store, sender.name) is not None:
        quoted = quote_name(name)
        yield f"nobody is registered under the name {quoted}: it waits until somebody is"


# --- packages ---------------------------------------------------------------------------------


def compose_package(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Compose the package of an initiate, before the hub completes and seals it.

    A deadline beside the package goes into it, so that it is hashed too.
    """
    verification = _object_field(fields, "verification")
    deadline = {"deadline": fields["deadline"]} if fields.get("deadline") else {}
    return {
        "task": {**fields["task"], **deadline},
        "context": fields["context"],
        "work_state": fields["work_state"],
        "artifacts": fields.get("artifacts", []),
        "provenance": _object_field(fields, "provenance"),
        "policy": fields["policy"],
        "verification": {"schema_version": verification.get("schema_version", wire.SCHEMA_VERSION)},
    }


def parse_due_at(arguments: wire.Initiate) -> int | None:
    """Parse the deadline of an initiate, if one is stated."""
    stated = arguments.deadline or arguments.task.deadline or ""
    return parse_rfc3339(stated) if stated else None


def hash_as_sent(fields: Mapping[str, Any]) -> str:
    """Hash of the package exactly as its sender wrote it, without defaults."""
    return compute_package_hash({name: fields[name] for name in wire.SECTIONS if name in fields})


def _object_field(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = fields.get(name, {})
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}


# --- initiate ---------------------------------------------------------------------------------


def _initiate_commands(
    call: ActionCall,
    known: handoff_state.Handoff | None,
    actor: Actor,
    facts: Facts,
    choices: Choices,
) -> Commands | Fault:
    """Translate an offer to commands."""
    arguments: wire.Initiate = call.arguments
    del known
    teamspace = _resolve_teamspace(call, actor, facts, choices)
    if isinstance(teamspace, Fault):
        return teamspace
    for name in (actor, arguments.to_agent):
        if fault := check_membership(teamspace, name, choices):
            return fault
    stated = arguments.verification.package_hash or ""
    is_as_given = bool(stated) and stated == hash_as_sent(call.original)
    own = {stage: parse_duration(span) for stage, span in arguments.sla.by_stage.items()}
    package = compose_package(call.filled)
    if secret := choices.find_secret(package):
        return fault_from_refusal(secret)
    call.warnings.extend(recipient_warnings(arguments.to_agent, actor, facts.store))
    offer = handoff_state.ProposeHandoff(
        task=arguments.task.task_id,
        recipient=arguments.to_agent,
        package=package,
        id=arguments.handoff_id,
        title=arguments.task.title,
        reason=arguments.reason,
        thread=arguments.thread_id,
        teamspace=teamspace,
        stated_hash="" if is_as_given else stated,
        supersedes=arguments.supersedes,
        sla_ms={**choices.sla_ms, **own},
        due_at=parse_due_at(arguments),
    )
    return (*_adopt_commands(arguments, actor, facts, choices), offer)


def _resolve_teamspace(
    call: ActionCall, actor: Actor, facts: Facts, choices: Choices
) -> str | Fault:
    """Teamspace of an offer; one that supersedes another stays in its teamspace unless it names
    one.
    """
    arguments: wire.Initiate = call.arguments
    found = find_handoff(facts.store, arguments.supersedes) if arguments.supersedes else None
    if not isinstance(found, handoff_state.Handoff):
        return arguments.teamspace_id
    if is_hidden(found, actor, choices):
        return fault_from_refusal(not_found.handoff(found.id))
    return arguments.teamspace_id if "teamspace_id" in call.filled else found.teamspace


def _adopt_commands(
    arguments: wire.Initiate, actor: Actor, facts: Facts, choices: Choices
) -> Commands:
    """An unknown task becomes its sender's task with its first handoff (S-ADOPT)."""
    if not choices.adopt or facts.task_exists(arguments.task.task_id):
        return ()
    return (
        AdoptTask(
            kind=ALIAS_KIND,
            name=arguments.task.task_id,
            title=arguments.task.title,
            review_required=choices.review_required,
            max_attempts=choices.max_attempts,
            owner=actor.name,
            priority=arguments.task.priority,
        ),
    )


# --- accept, activate and complete ------------------------------------------------------------


def _accept_commands(
    call: ActionCall, known: handoff_state.Handoff | None, actor: Actor, _: Facts, choices: Choices
) -> Commands | Fault:
    """Accept; everything outside the ledger is checked, but only for the recipient."""
    arguments: wire.Accept = call.arguments
    if known is None or known.recipient != actor.name:
        return (handoff_state.AcceptHandoff(arguments.handoff_id, "", notes=arguments.notes),)
    names = {artifact.artifact_id for artifact in package_artifacts(known)}
    for name in arguments.leave_out:
        if name not in names:
            return Fault(
                "schema_invalid", f"the package has no artifact {name[:80]!a}", "leave_out"
            )
    if known.status not in ("proposed", "validating"):
        is_same = set(arguments.leave_out) <= set(known.left_out)
        left_out = known.left_out if is_same else arguments.leave_out
        return (
            handoff_state.AcceptHandoff(
                known.id, known.package_hash, left_out=left_out, notes=arguments.notes
            ),
        )
    result = run_gate(known, arguments.leave_out, choices)
    return (
        handoff_state.AcceptHandoff(
            handoff=known.id,
            package_hash=known.package_hash,
            passed=result.passed,
            failed=result.failed,
            waits_for=result.waits_for,
            artifacts=result.artifacts,
            left_out=result.left_out,
            notes=arguments.notes,
        ),
    )


def _activate_commands(
    call: ActionCall, known: handoff_state.Handoff | None, actor: Actor, _: Facts, choices: Choices
) -> Commands | Fault:
    arguments: wire.Activate = call.arguments
    is_due = known is not None and known.status == "accepted" and known.recipient == actor.name
    command = activate_command(arguments.handoff_id, known if is_due else None, choices)
    if isinstance(command, Fault):
        return command
    update = call.filled.get("work_state_update", {})
    return (replace(command, session=arguments.session, work_state_update=update),)


def activate_command(
    id: str, accepted: handoff_state.Handoff | None, choices: Choices
) -> handoff_state.ActivateHandoff | Fault:
    """Activate a handoff; the verified copies of one that is accepted are checked again."""
    failure = None if accepted is None else check_verified_copies(accepted, choices.artifacts)
    if failure is not None and failure[0] == TRANSIENT:
        return Fault(CONFLICT_RETRY, f"{failure[1]}; nothing has changed, activate it again")
    failed = () if failure is None else (cast(handoff_state.GateFailure, failure),)
    return handoff_state.ActivateHandoff(id, ttl_ms=choices.ttl_ms, failed=failed)


def _complete_commands(
    call: ActionCall, known: handoff_state.Handoff | None, actor: Actor, _: Facts, choices: Choices
) -> Commands | Fault:
    arguments: wire.Complete = call.arguments
    is_due = known is not None and known.status == "activated" and known.recipient == actor.name
    named = arguments.final_artifacts if is_due else ()
    missing = "" if known is None else missing_artifact(known, named, choices)
    if missing:
        return Fault("missing_artifact", missing, "final_artifacts", is_sentence=True)
    return (
        handoff_state.CompleteHandoff(
            arguments.handoff_id,
            notes=arguments.completion_notes,
            final_artifacts=tuple(call.filled.get("final_artifacts", ())),
            is_confidential=known is not None and is_closed(choices.teamspaces, known.teamspace),
            backoff=choices.backoff,
        ),
    )


# --- actions that need only their arguments ---------------------------------------------------


def _single_command(make: Callable[[Any, ActionCall], Command]) -> "_CommandMaker":
    """Translate an action whose arguments say everything."""

    def make_commands(call: ActionCall, *_: object) -> Commands:
        return (make(call.arguments, call),)

    return make_commands


def _approval_command(arguments: wire.Approve, call: ActionCall) -> Command:
    return handoff_state.ApproveHandoff(
        arguments.handoff_id,
        approved=call.action == "approve",
        package_hash=arguments.package_hash or "",
        note=arguments.notes,
    )


def _reject_command(arguments: wire.Reject, _: ActionCall) -> Command:
    return handoff_state.RejectHandoff(
        arguments.handoff_id, arguments.reason, arguments.detail, arguments.suggested_fix
    )


def _reassign_commands(
    call: ActionCall,
    known: handoff_state.Handoff | None,
    actor: Actor,
    facts: Facts,
    choices: Choices,
) -> Commands | Fault:
    arguments: wire.Reassign = call.arguments
    if known is not None and (
        fault := check_membership(known.teamspace, arguments.to_agent, choices)
    ):
        return fault
    call.warnings.extend(recipient_warnings(arguments.to_agent, actor, facts.store))
    return (
        handoff_state.ReassignHandoff(arguments.handoff_id, arguments.to_agent, arguments.notes),
    )


_CommandMaker = Callable[
    [ActionCall, handoff_state.Handoff | None, Actor, Facts, Choices], Commands | Fault
]

_ACTION_COMMANDS: Final[Mapping[str, _CommandMaker]] = {
    "initiate": _initiate_commands,
    "accept": _accept_commands,
    "reject": _single_command(_reject_command),
    "activate": _activate_commands,
    "complete": _complete_commands,
    "close": _single_command(
        lambda close, _: handoff_state.CloseHandoff(close.handoff_id, close.closure_notes)
    ),
    "withdraw": _single_command(
        lambda taken, _: handoff_state.WithdrawHandoff(taken.handoff_id, taken.notes)
    ),
    "extend_sla": _single_command(
        lambda more, _: handoff_state.ExtendHandoff(
            more.handoff_id, by_ms=parse_duration(more.by), stage=more.stage
        )
    ),
    "reassign": _reassign_commands,
    "approve": _single_command(_approval_command),
    "deny": _single_command(_approval_command),
}
"""Action -> its translation; actions that are missing here are queries."""
