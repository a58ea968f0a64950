"""`dragoman handoff accept`, `reject`, `activate` …: the steps of a handoff after its offer."""

from typing import Annotated, Any

import typer

from dragoman.core.events import HandoffStatus, RejectReason
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, run_action
from dragoman.surfaces.cli.handoff.offer import file_artifacts, parse_object
from dragoman.surfaces.cli.options import text_option
from dragoman.surfaces.cli.verb import CliCommand

NotesOption = Annotated[str, text_option("notes", "TEXT", "Notes, recorded with it.")]
NoteOption = Annotated[str, text_option("note", "TEXT", "The reason, recorded with it.")]
HashOption = Annotated[
    str,
    text_option("hash", "SHA256", "The package_hash that you have checked; else the present one."),
]


def accept(
    context: CommandContext,
    id: HandoffArgument,
    notes: NotesOption = "",
    leave_out: Annotated[
        list[str] | None,
        text_option("leave-out", "ARTIFACT", "An artifact to leave out; repeatable."),
    ] = None,
) -> CommandResult:
    """Accept a handoff to you, if it passes every check.

    The package, its policy and its artifacts are checked first. What definitely fails ends the
    handoff as rejected; what waits for a person's approval may be accepted again after that.

    \b
    Example:
      dragoman handoff accept fix-login-1 --as bob
    """
    arguments = {"handoff_id": id, "notes": notes, "leave_out": leave_out}
    return run_action(context, "accept", arguments)


def reject(
    context: CommandContext,
    id: HandoffArgument,
    *,
    reason: Annotated[RejectReason, typer.Option("--reason", help="The code of the reason.")],
    detail: Annotated[str, text_option("detail", "TEXT", "What is wrong, in words.")],
    fix: Annotated[str, text_option("fix", "TEXT", "What would help.")] = "",
) -> CommandResult:
    """Reject a handoff to you, even after its work has begun.

    A coordinator may reject for the recipient.

    \b
    Example:
      dragoman handoff reject fix-login-1 --as bob --reason capacity_unavailable \\
        --detail "not before Friday" --fix "ask carol"
    """
    arguments = {"handoff_id": id, "reason": reason, "detail": detail, "suggested_fix": fix}
    return run_action(context, "reject", arguments)


def activate(
    context: CommandContext,
    id: HandoffArgument,
    *,
    work_state: Annotated[
        str, text_option("work-state", "JSON", "Changes of the work's state, as a JSON object.")
    ] = "",
    session: Annotated[
        str, text_option("session", "NAME", "The session in which you work; else one of its own.")
    ] = "",
) -> CommandResult:
    """Begin the accepted work: from here on the task is yours.

    \b
    Examples:
      dragoman handoff activate fix-login-1 --as bob
      dragoman handoff activate fix-login-1 --as bob \\
        --work-state '{"percent_complete": 60, "next_step": "write the other test"}'
    """
    update: dict[str, Any] = {}
    if work_state:
        expectation = 'as {"next_step": "…", "percent_complete": 60}'
        update = parse_object(work_state.encode(), "--work-state", expectation)
    arguments = {"handoff_id": id, "work_state_update": update or None, "session": session}
    return run_action(context, "activate", arguments)


def complete(
    context: CommandContext,
    id: HandoffArgument,
    notes: NotesOption = "",
    artifact: Annotated[
        list[str] | None,
        text_option(
            "artifact",
            "PATH",
            "A result of the work, beneath an artifact root; repeatable.",
        ),
    ] = None,
) -> CommandResult:
    """Report that the work of a handoff is done.

    \b
    Example:
      dragoman handoff complete fix-login-1 --as bob --notes "merged as 4f2a"
    """
    finals = file_artifacts(artifact)
    arguments = {"handoff_id": id, "completion_notes": notes, "final_artifacts": finals}
    return run_action(context, "complete", arguments)


def close(context: CommandContext, id: HandoffArgument, notes: NotesOption = "") -> CommandResult:
    """Close the record of a handoff that was completed or rejected.

    \b
    Example:
      dragoman handoff close fix-login-1 --as ada
    """
    return run_action(context, "close", {"handoff_id": id, "closure_notes": notes})


def withdraw(
    context: CommandContext, id: HandoffArgument, notes: NotesOption = ""
) -> CommandResult:
    """Take your offer back before anybody works on it.

    \b
    Example:
      dragoman handoff withdraw fix-login-1 --as ada
    """
    return run_action(context, "withdraw", {"handoff_id": id, "notes": notes})


def extend(
    context: CommandContext,
    id: HandoffArgument,
    *,
    by: Annotated[str, text_option("by", "TIME", "How much longer: 30m, 2h.")],
    stage: Annotated[
        HandoffStatus | None,
        typer.Option("--stage", show_default=False, help="Only if it is in this state."),
    ] = None,
) -> CommandResult:
    """Give the present state of a handoff more time; for coordinators.

    \b
    Example:
      dragoman handoff extend fix-login-1 --by 30m --as carol
    """
    return run_action(context, "extend_sla", {"handoff_id": id, "by": by, "stage": stage})


def reassign(
    context: CommandContext,
    id: HandoffArgument,
    *,
    to: Annotated[str, text_option("to", "NAME", "The new recipient.")],
    notes: NotesOption = "",
) -> CommandResult:
    """Offer the same package to somebody else; for coordinators.

    The handoff ends, and a new one begins in its place.

    \b
    Example:
      dragoman handoff reassign fix-login-1 --to dan --as carol
    """
    return run_action(context, "reassign", {"handoff_id": id, "to_agent": to, "notes": notes})


def approve(
    context: CommandContext, id: HandoffArgument, hash: HashOption = "", note: NoteOption = ""
) -> CommandResult:
    """Approve, as a person, a package that waits for approval.

    Then its recipient can accept it. The approval counts for this package only. With --as, the name
    must be registered as a person.

    \b
    Example:
      dragoman handoff approve fix-login-1
    """
    return run_action(context, "approve", {"handoff_id": id, "package_hash": hash, "notes": note})


def deny(
    context: CommandContext, id: HandoffArgument, hash: HashOption = "", note: NoteOption = ""
) -> CommandResult:
    """Deny, as a person, a package that waits for approval.

    The handoff is then rejected.

    \b
    Example:
      dragoman handoff deny fix-login-1 --note "not outside of the company"
    """
    return run_action(context, "deny", {"handoff_id": id, "package_hash": hash, "notes": note})


STEP_COMMANDS = (
    CliCommand("accept", accept),
    CliCommand("reject", reject),
    CliCommand("activate", activate),
    CliCommand("complete", complete),
    CliCommand("close", close),
    CliCommand("withdraw", withdraw),
    CliCommand("extend", extend),
    CliCommand("reassign", reassign),
    CliCommand("approve", approve),
    CliCommand("deny", deny),
)
