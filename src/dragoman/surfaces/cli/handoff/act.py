"""`dragoman handoff accept`, `reject`, `activate` …: the steps of a handoff after its offer."""

from typing import Annotated, Any

import typer

from dragoman.core.events import HandoffStatus, RejectReason
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, asked
from dragoman.surfaces.cli.handoff.offer import artifacts_at, object_in
from dragoman.surfaces.cli.options import text_option
from dragoman.surfaces.cli.verb import Verb

NotesOption = Annotated[str, text_option("notes", "TEXT", "Notes, recorded with it.")]
NoteOption = Annotated[str, text_option("note", "TEXT", "The reason, recorded with it.")]
HashOption = Annotated[
    str,
    text_option("hash", "SHA256", "The package_hash that you have checked; else the present one."),
]


def accept(
    call: Call,
    id: HandoffArgument,
    notes: NotesOption = "",
    leave_out: Annotated[
        list[str] | None,
        text_option("leave-out", "ARTIFACT", "An artifact to leave out; repeatable."),
    ] = None,
) -> Answer:
    """Accept a handoff to you, if it passes every check.

    The package, its policy and its artifacts are checked first. What definitely fails ends the
    handoff as rejected; what waits for a person's approval may be accepted again after that.

    \b
    Example:
      dragoman handoff accept fix-login-1 --as bob
    """
    given = {"handoff_id": id, "notes": notes, "leave_out": leave_out}
    return asked(call, "accept", given)


def reject(
    call: Call,
    id: HandoffArgument,
    *,
    reason: Annotated[RejectReason, typer.Option("--reason", help="The code of the reason.")],
    detail: Annotated[str, text_option("detail", "TEXT", "What is wrong, in words.")],
    fix: Annotated[str, text_option("fix", "TEXT", "What would help.")] = "",
) -> Answer:
    """Reject a handoff to you, even after its work has begun.

    A coordinator may reject for the recipient.

    \b
    Example:
      dragoman handoff reject fix-login-1 --as bob --reason capacity_unavailable \\
        --detail "not before Friday" --fix "ask carol"
    """
    given = {"handoff_id": id, "reason": reason, "detail": detail, "suggested_fix": fix}
    return asked(call, "reject", given)


def activate(
    call: Call,
    id: HandoffArgument,
    *,
    work_state: Annotated[
        str, text_option("work-state", "JSON", "Changes of the work's state, as a JSON object.")
    ] = "",
    session: Annotated[
        str, text_option("session", "NAME", "The session in which you work; else one of its own.")
    ] = "",
) -> Answer:
    """Begin the accepted work: from here on the task is yours.

    \b
    Examples:
      dragoman handoff activate fix-login-1 --as bob
      dragoman handoff activate fix-login-1 --as bob \\
        --work-state '{"percent_complete": 60, "next_step": "write the other test"}'
    """
    update: dict[str, Any] = {}
    if work_state:
        meant = 'as {"next_step": "…", "percent_complete": 60}'
        update = object_in(work_state.encode(), "--work-state", meant)
    given = {"handoff_id": id, "work_state_update": update or None, "session": session}
    return asked(call, "activate", given)


def complete(
    call: Call,
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
) -> Answer:
    """Report that the work of a handoff is done.

    \b
    Example:
      dragoman handoff complete fix-login-1 --as bob --notes "merged as 4f2a"
    """
    finals = artifacts_at(artifact)
    given = {"handoff_id": id, "completion_notes": notes, "final_artifacts": finals}
    return asked(call, "complete", given)


def close(call: Call, id: HandoffArgument, notes: NotesOption = "") -> Answer:
    """Close the record of a handoff that was completed or rejected.

    \b
    Example:
      dragoman handoff close fix-login-1 --as ada
    """
    return asked(call, "close", {"handoff_id": id, "closure_notes": notes})


def withdraw(call: Call, id: HandoffArgument, notes: NotesOption = "") -> Answer:
    """Take your offer back before anybody works on it.

    \b
    Example:
      dragoman handoff withdraw fix-login-1 --as ada
    """
    return asked(call, "withdraw", {"handoff_id": id, "notes": notes})


def extend(
    call: Call,
    id: HandoffArgument,
    *,
    by: Annotated[str, text_option("by", "TIME", "How much longer: 30m, 2h.")],
    stage: Annotated[
        HandoffStatus | None,
        typer.Option("--stage", show_default=False, help="Only if it is in this state."),
    ] = None,
) -> Answer:
    """Give the present state of a handoff more time; for coordinators.

    \b
    Example:
      dragoman handoff extend fix-login-1 --by 30m --as carol
    """
    return asked(call, "extend_sla", {"handoff_id": id, "by": by, "stage": stage})


def reassign(
    call: Call,
    id: HandoffArgument,
    *,
    to: Annotated[str, text_option("to", "NAME", "The new recipient.")],
    notes: NotesOption = "",
) -> Answer:
    """Offer the same package to somebody else; for coordinators.

    The handoff ends, and a new one begins in its place.

    \b
    Example:
      dragoman handoff reassign fix-login-1 --to dan --as carol
    """
    return asked(call, "reassign", {"handoff_id": id, "to_agent": to, "notes": notes})


def approve(
    call: Call, id: HandoffArgument, hash: HashOption = "", note: NoteOption = ""
) -> Answer:
    """Approve, as a person, a package that waits for approval.

    Then its recipient can accept it. The approval counts for this package only. With --as, the name
    must be registered as a person.

    \b
    Example:
      dragoman handoff approve fix-login-1
    """
    return asked(call, "approve", {"handoff_id": id, "package_hash": hash, "notes": note})


def deny(call: Call, id: HandoffArgument, hash: HashOption = "", note: NoteOption = "") -> Answer:
    """Deny, as a person, a package that waits for approval.

    The handoff is then rejected.

    \b
    Example:
      dragoman handoff deny fix-login-1 --note "not outside of the company"
    """
    return asked(call, "deny", {"handoff_id": id, "package_hash": hash, "notes": note})


VERBS = (
    Verb("accept", accept),
    Verb("reject", reject),
    Verb("activate", activate),
    Verb("complete", complete),
    Verb("close", close),
    Verb("withdraw", withdraw),
    Verb("extend", extend),
    Verb("reassign", reassign),
    Verb("approve", approve),
    Verb("deny", deny),
)
