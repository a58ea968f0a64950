"""`dragoman handoff`: offers, and the steps of a handoff after its offer.

What changes something goes through the `acp_handoff` operation, so that the command line says no
more and no less than every other surface.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from dragoman.core.errors import Refusal, Refused
from dragoman.core.handoff.state import HandoffStatus, RejectReason
from dragoman.surfaces.cli.command import CliCommand, argument, option
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen

if TYPE_CHECKING:
    from dragoman.core.handoff.state import Handoff
    from dragoman.engine.handoff_diagnosis import HandoffDiagnosis

# --- actions ----------------------------------------------------------------------------------

HANDOFF_OPERATION = "acp_handoff"

HandoffArgument = Annotated[str, argument("ID", "The handoff's id.")]


def load_handoff(context: CommandContext, directory: DataDirectory, id: str) -> "Handoff":
    """Find a handoff that the actor may see; raises the refusal."""
    from dragoman.engine.queries.handoffs import find_handoff

    handoff = find_handoff(
        directory.hub.store, id, context.acting_agent(), closed_teamspaces(context, directory)
    )
    if isinstance(handoff, Refusal):
        raise Refused(handoff)
    return handoff


def closed_teamspaces(context: CommandContext, directory: DataDirectory) -> frozenset[str]:
    """Teamspaces that the actor does not belong to."""
    from dragoman.engine.queries.handoffs import hidden_teamspaces

    return hidden_teamspaces(
        directory.settings.teamspaces, context.actor(directory, context.acting_agent())
    )


def run_action(context: CommandContext, action: str, arguments: Mapping[str, Any]) -> CommandResult:
    """Open the data directory and run an action on a handoff."""
    with context.open_for_writing(create_missing=False) as directory:
        return run_action_in(context, directory, action, arguments)


def run_action_in(
    context: CommandContext, directory: DataDirectory, action: str, arguments: Mapping[str, Any]
) -> CommandResult:
    """Run an action on a handoff, without its empty arguments."""
    from dragoman.engine.request import Rejected

    given_arguments = {
        name: value for name, value in arguments.items() if value not in ("", None, [], ())
    }
    actor = context.actor(directory, context.acting_agent())
    answer = directory.router.call(HANDOFF_OPERATION, {"action": action, **given_arguments}, actor)
    reply = cast(dict[str, Any], answer.reply or {})
    after = _diagnose_after(context, directory, str(reply.get("handoff_id", "")))
    refusal = (answer.refusal.code, answer.detail) if isinstance(answer, Rejected) else None
    return _make_result(context, reply, refusal, after)


def _diagnose_after(
    context: CommandContext, directory: DataDirectory, id: str
) -> "HandoffDiagnosis | None":
    """Diagnosis of the handoff after the action, if the actor may see it."""
    from dragoman.engine.handoff_diagnosis import diagnose_handoff
    from dragoman.engine.queries.handoffs import find_handoff

    if not id:
        return None
    handoff = find_handoff(
        directory.hub.store, id, context.acting_agent(), closed_teamspaces(context, directory)
    )
    if isinstance(handoff, Refusal):
        return None
    return diagnose_handoff(
        directory.hub.store, handoff, directory.hub.clock.now(), directory.settings.teamspaces
    )


def _split_reason(
    refusal: tuple[str, str] | None, failures: Sequence[str]
) -> tuple[str, Sequence[str]]:
    """Separate the reason of a refusal from the other failures, so that none is printed twice."""
    if refusal is None:
        return "", failures
    code, detail = refusal
    if len(failures) > 1 and detail == "; ".join(failures):
        return f"{len(failures)} faults", failures
    return detail, [one for one in failures if one not in (detail, f"{code}: {detail}")]


def _verification_lines(
    metadata: Mapping[str, Any], failures: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Lines about verification: label, style and text."""
    passed = metadata.get("verification_passed")
    if passed:
        yield "passed: ", "green", ", ".join(passed)
    yield from (("failed: ", "red", failure) for failure in failures)


def _make_result(
    context: CommandContext,
    reply: dict[str, Any],
    refusal: tuple[str, str] | None,
    after: "HandoffDiagnosis | None",
) -> CommandResult:
    """Result with the dialect's reply; a refusal is printed as by every command."""

    metadata = cast(dict[str, Any], reply.get("metadata") or {})
    reason, failures = _split_reason(refusal, metadata.get("verification_failed", ()))

    def show(screen: Screen) -> None:
        if refusal is not None:
            context.err.line((f"{refusal[0]}: ", "bold red"), reason)
        status = reply.get("status", "") if after is None else after.status
        if status:
            screen.line((reply["handoff_id"], "bold"), f" {status}")
        for head, style, check in _verification_lines(metadata, failures):
            screen.line((head, style), check)
        if "package_hash" in metadata:
            screen.line(f"package {metadata['package_hash']}")
        if after is not None and after.due_by and "due_by" in metadata:
            screen.line(f"by {after.due_by}")
        for remark in metadata.get("warnings", ()):
            screen.line(("look: ", "yellow"), str(remark))
        for remark in metadata.get("workq_items", ()):
            screen.line(("work queue: ", "yellow"), str(remark))
        if after is not None and after.steps:
            screen.line(f"next: {after.summary}")

    error_fields = {} if refusal is None else {"code": refusal[0], "detail": refusal[1]}
    return CommandResult({**reply, **error_fields}, show, is_ok=refusal is None)


# --- initiate ---------------------------------------------------------------------------------

HandoffPriority = Literal["low", "normal", "high", "critical"]

WorkStatus = Literal["not_started", "in_progress", "blocked", "review"]


def initiate(
    context: CommandContext,
    source: Annotated[
        str, argument("FILE|-", "The input of `acp_handoff`, as JSON; options override it.")
    ] = "",
    *,
    to: Annotated[str, option("--to", "NAME", "The recipient.")] = "",
    task: Annotated[str, option("--task", "ID", "The task; an unknown one is made.")] = "",
    title: Annotated[str, option("--title", "TEXT", "Its title; else the task's.")] = "",
    objective: Annotated[str, option("--objective", "TEXT", "Its objective; else its title.")] = "",
    criterion: Annotated[
        list[str] | None, option("--criterion", "TEXT", "A criterion of success; repeatable.")
    ] = None,
    summary: Annotated[str, option("--summary", "TEXT", "A summary of the present state.")] = "",
    next_step: Annotated[str, option("--next-step", "TEXT", "What to do first.")] = "",
    state: Annotated[
        WorkStatus | None, option("--state", "", "How far the work is; else not_started.")
    ] = None,
    priority: Annotated[
        HandoffPriority | None, option("--priority", "", "Its priority; else normal.")
    ] = None,
    artifact: Annotated[
        list[str] | None,
        option("--artifact", "PATH", "An artifact, beneath an artifact root; repeatable."),
    ] = None,
    deadline: Annotated[str, option("--deadline", "RFC3339", "By when it is to be done.")] = "",
    approval: Annotated[
        bool, option("--needs-approval", "", "A person has to approve it first.")
    ] = False,
    supersedes: Annotated[
        str, option("--supersedes", "ID", "The handoff that this one supersedes.")
    ] = "",
    reason: Annotated[str, option("--reason", "TEXT", "Why it is handed over.")] = "",
    teamspace: Annotated[str, option("--teamspace", "NAME", "Its teamspace.")] = "",
    thread: Annotated[str, option("--thread", "ID", "The thread that it belongs to.")] = "",
    id: Annotated[str, option("--id", "ID", "An id of your own; else the hub gives it one.")] = "",
) -> CommandResult:
    """Offer work that you own to another agent.

    A package has at least a summary, a next step and one criterion. It does not change any more
    once it is offered, and its hash identifies it. The work stays yours until the recipient
    activates.

    \b
    Examples:
      dragoman handoff initiate package.json --as ada
      dragoman handoff initiate --as ada --to bob --task fix-login \\
        --criterion "all tests pass" --summary "half done" --next-step "write the tests"
    """
    parts: dict[str, dict[str, Any]] = {
        "task": {
            "task_id": task,
            "title": title,
            "objective": objective,
            "success_criteria": criterion,
            "priority": priority,
            "deadline": deadline,
        },
        "context": {"summary": summary},
        "work_state": {"status": state, "next_step": next_step},
        "policy": {"requires_human_approval": approval},
    }
    top_level = {
        "to_agent": to,
        "artifacts": file_artifacts(artifact),
        "supersedes": supersedes,
        "reason": reason,
        "teamspace_id": teamspace,
        "thread_id": thread,
        "handoff_id": id,
    }
    if not source and not (to and task):
        raise_usage_error(
            "name the recipient and the task: --to NAME and --task ID, or name a file"
        )
    arguments = read_arguments(source, "initiate") if source else _default_parts()
    for name, part in parts.items():
        _override_part(arguments, name, _non_empty(part))
    if deadline:
        arguments.pop("deadline", None)
    with context.open_for_writing() as directory:
        if not source:
            name = title or objective or _existing_title(directory, task)
            arguments["task"] = {"title": name, "objective": name, **arguments["task"]}
        return run_action_in(context, directory, "initiate", arguments | _non_empty(top_level))


def _default_parts() -> dict[str, Any]:
    """Default parts of a package without a file."""
    return {
        "task": {"success_criteria": [], "priority": "normal"},
        "context": {},
        "work_state": {"status": "not_started"},
    }


def _override_part(arguments: dict[str, Any], name: str, options: Mapping[str, Any]) -> None:
    """Let the options of a part override the file, key by key."""
    part = arguments.get(name, {})
    # A part that is no object is left as it is: the hub reports what is wrong with it.
    if options and isinstance(part, dict):
        arguments[name] = {**_REQUIRED_FIELDS.get(name, {}), **part, **options}


_REQUIRED_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "policy": {"classification": "internal"}
}
"""Required fields of a part that no option sets."""


def _non_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def file_artifacts(paths: Iterable[str] | None) -> list[dict[str, Any]]:
    """Artifacts for these paths."""
    return [
        {"artifact_id": path.rpartition("/")[2], "ref": {"type": "file", "path": path}}
        for path in paths or ()
    ]


def _existing_title(directory: DataDirectory, task: str) -> str:
    """Title of the task if it exists; else its name."""
    from dragoman.engine.queries.tasks import find_task

    found = find_task(directory.hub.store, task)
    return task if isinstance(found, Refusal) else found.task.title


def read_arguments(source: str, action: str) -> dict[str, Any]:
    """Read the arguments of an action from a file or standard input."""
    from dragoman.text.strict_json import MAX_BYTES

    data = read_source(source, MAX_BYTES)
    arguments = parse_object(data, source, "it has to hold the input of acp_handoff")
    if arguments.pop("action", action) != action:
        raise_usage_error(f"{source} asks for another action: use `dragoman call acp_handoff`")
    return arguments


def parse_object(data: bytes, source: str, expectation: str) -> dict[str, Any]:
    """Parse a JSON object; ends the call if it is none."""
    from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, parse_json

    try:
        value = parse_json(data, MAX_BYTES)
    except StrictJsonError as error:
        where = f" at {error.path}" if error.path else ""
        raise_usage_error(f"{source} is not JSON that can be trusted{where}: {error.reason}")
    if not isinstance(value, dict):
        raise_usage_error(f"{source} is no JSON object: {expectation}")
    return cast(dict[str, Any], value)


# --- accept, reject, activate, complete, close, withdraw, extend, reassign, approve, deny -----

NotesOption = Annotated[str, option("--notes", "TEXT", "Notes, recorded with it.")]

NoteOption = Annotated[str, option("--note", "TEXT", "The reason, recorded with it.")]

HashOption = Annotated[
    str, option("--hash", "SHA256", "The package_hash that you have checked; else the present one.")
]


def accept(
    context: CommandContext,
    id: HandoffArgument,
    notes: NotesOption = "",
    leave_out: Annotated[
        list[str] | None, option("--leave-out", "ARTIFACT", "An artifact to leave out; repeatable.")
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
    reason: Annotated[RejectReason, option("--reason", "", "The code of the reason.")],
    detail: Annotated[str, option("--detail", "TEXT", "What is wrong, in words.")],
    fix: Annotated[str, option("--fix", "TEXT", "What would help.")] = "",
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
        str, option("--work-state", "JSON", "Changes of the work's state, as a JSON object.")
    ] = "",
    session: Annotated[
        str, option("--session", "NAME", "The session in which you work; else one of its own.")
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
        option("--artifact", "PATH", "A result of the work, beneath an artifact root; repeatable."),
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
    by: Annotated[str, option("--by", "TIME", "How much longer: 30m, 2h.")],
    stage: Annotated[
        HandoffStatus | None, option("--stage", "", "Only if it is in this state.")
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
    to: Annotated[str, option("--to", "NAME", "The new recipient.")],
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


COMMANDS = (
    CliCommand("initiate", initiate),
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
