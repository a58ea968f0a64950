"""`dragoman handoff`: offers, the steps of a handoff, and where it stands.

What changes something goes through the `acp_handoff` operation, so that the command line says no
more and no less than every other surface.
"""

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args

from msgspec import to_builtins

from dragoman.core.base import Priority
from dragoman.core.errors import Refusal, Refused, StoreUnavailable
from dragoman.core.handoff.state import SLA_STATES, HandoffStatus, RejectReason
from dragoman.core.limits import MAX_PAGE
from dragoman.surfaces.cli.command import CliCommand, argument
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.generated import Field, OperationCommand, Typed, make_commands
from dragoman.surfaces.cli.render import Screen, print_fields

if TYPE_CHECKING:
    from dragoman.core.handoff.state import Handoff
    from dragoman.engine.handoff_diagnosis import HandoffDiagnosis

# --- shared -----------------------------------------------------------------------------------

OPERATION: Final = "acp_handoff"

HandoffArgument = Annotated[str, argument("ID", "The handoff's id.")]


def load_handoff(context: CommandContext, directory: DataDirectory, id: str) -> "Handoff":
    """Find a handoff that the actor may see; raises the refusal."""
    from dragoman.engine.queries.handoffs import find_handoff

    handoff = find_handoff(directory.hub.store, id, context.reader(directory))
    if isinstance(handoff, Refusal):
        raise Refused(handoff)
    return handoff


# --- accept, reject, activate, complete, close, withdraw, extend, reassign, approve, deny -----


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError('it is no JSON object, such as {"next_step": "…", "percent_complete": 60}')
    return cast(dict[str, Any], value)


def parse_artifact(path: str) -> dict[str, Any]:
    """Artifact for a path."""
    return {"artifact_id": path.rpartition("/")[2], "ref": {"type": "file", "path": path}}


_ID = Field("handoff_id", "", "ID", "The handoff's id.", required=True)


def _notes(field: str = "notes", flag: str = "--notes") -> Field:
    return Field(field, flag, "TEXT", "Notes, recorded with it.")


_HASH = Field(
    "package_hash",
    "--hash",
    "SHA256",
    "The package_hash that you have checked; else the present one.",
)

_HEADLINE = (
    "{handoff_id} {status}",
    "passed: {metadata.verification_passed:list}",
    "package {metadata.package_hash}",
    "by {metadata.due_by}",
    "look: {metadata.warnings:list}",
    "work queue: {metadata.workq_items:list}",
)


def _step(name: str, text: str, example: str, *fields: Field, action: str = "") -> OperationCommand:
    """Table of a command that takes a step of a handoff."""
    return OperationCommand(
        name,
        OPERATION,
        text,
        f"dragoman handoff {name} fix-login-1 {example}".rstrip(),
        fields=(_ID, *fields),
        fixed={"action": action or name},
        creates=False,
        headline=_HEADLINE,
    )


STEPS = (
    _step(
        "accept",
        """Accept a handoff to you, if it passes every check.

    The package, its policy and its artifacts are checked first. What definitely fails ends the
    handoff as rejected; what waits for a person's approval may be accepted again after that.""",
        "--as bob",
        _notes(),
        Field(
            "leave_out",
            "--leave-out",
            "ARTIFACT",
            "An artifact to leave out; repeatable.",
            many=True,
        ),
    ),
    _step(
        "reject",
        """Reject a handoff to you, even after its work has begun.

    A coordinator may reject for the recipient.""",
        '--as bob --reason capacity_unavailable --detail "not before Friday"',
        Field(
            "reason",
            "--reason",
            "",
            "The code of the reason.",
            choices=get_args(RejectReason),
            required=True,
        ),
        Field("detail", "--detail", "TEXT", "What is wrong, in words.", required=True),
        Field("suggested_fix", "--fix", "TEXT", "What would help."),
    ),
    _step(
        "activate",
        "Begin the accepted work: from here on the task is yours.",
        """--as bob --work-state '{"percent_complete": 60}'""",
        Field(
            "work_state_update",
            "--work-state",
            "JSON",
            "Changes of the work's state, as a JSON object.",
            parse=parse_object,
        ),
        Field(
            "session",
            "--session",
            "NAME",
            "The session in which you work; else one of its own.",
        ),
    ),
    _step(
        "complete",
        "Report that the work of a handoff is done.",
        '--as bob --notes "merged as 4f2a"',
        _notes("completion_notes"),
        Field(
            "final_artifacts",
            "--artifact",
            "PATH",
            "A result of the work, beneath an artifact root; repeatable.",
            parse=parse_artifact,
            many=True,
        ),
    ),
    _step(
        "close",
        "Close the record of a handoff that was completed or rejected.",
        "--as ada",
        _notes("closure_notes"),
    ),
    _step("withdraw", "Take your offer back before anybody works on it.", "--as ada", _notes()),
    _step(
        "extend",
        "Give the present state of a handoff more time; for coordinators.",
        "--by 30m --as carol",
        Field("by", "--by", "TIME", "How much longer: 30m, 2h.", required=True),
        Field("stage", "--stage", "", "Only if it is in this state.", choices=SLA_STATES),
        action="extend_sla",
    ),
    _step(
        "reassign",
        """Offer the same package to somebody else; for coordinators.

    The handoff ends, and a new one begins in its place.""",
        "--to dan --as carol",
        Field("to_agent", "--to", "NAME", "The new recipient.", required=True),
        _notes(),
    ),
    _step(
        "approve",
        """Approve, as a person, a package that waits for approval.

    Then its recipient can accept it. The approval counts for this package only. With --as, the name
    must be registered as a person.""",
        "",
        _HASH,
        _notes(flag="--note"),
    ),
    _step(
        "deny",
        """Deny, as a person, a package that waits for approval.

    The handoff is then rejected.""",
        '--note "not outside of the company"',
        _HASH,
        _notes(flag="--note"),
    ),
)

_STATUS_STYLES: Final = {
    "proposed": "cyan",
    "validating": "magenta",
    "accepted": "blue",
    "activated": "yellow",
    "rejected": "red",
    "completed": "green",
    "closed": "dim",
    "late": "red",
}

# --- initiate, list ---------------------------------------------------------------------------


def _complete_offer(context: CommandContext, arguments: dict[str, Any], typed: Typed) -> None:
    """Complete an offer: by what a file has, or by what the options leave out."""
    if source := typed["file__"]:
        _add_to_file(arguments, _read_offer(source))
    elif "to_agent" in arguments and "task_id" in arguments.get("task", {}):
        task = arguments["task"]
        title = task.get("title") or task.get("objective") or _find_title(context, task["task_id"])
        arguments["task"] = {"title": title, "objective": title, "success_criteria": [], **task}
        arguments["work_state"] = {"status": "not_started", **arguments.get("work_state", {})}
        arguments.setdefault("context", {})
        arguments.setdefault("policy", {})
    else:
        raise_usage_error(
            "name the recipient and the task: --to NAME and --task ID, or name a file"
        )
    arguments["action"] = "initiate"


def _add_to_file(arguments: dict[str, Any], offer: dict[str, Any]) -> None:
    """Add what a file has; options override it."""
    if "deadline" in arguments.get("task", {}):
        offer.pop("deadline", None)
    for name, part in offer.items():
        given = arguments.get(name)
        if isinstance(given, dict):
            # A part that is no object is left as it is: the hub reports what is wrong with it.
            arguments[name] = {**part, **given} if isinstance(part, dict) else part
        else:
            arguments.setdefault(name, part)


def _find_title(context: CommandContext, task: str) -> str:
    """Title of the task if it exists; else its name."""
    from dragoman.engine.queries.tasks import find_task

    try:
        with context.open_readonly() as directory:
            found = find_task(directory.store, task)
    except StoreUnavailable:  # it is made by this command
        return task
    return task if isinstance(found, Refusal) else found.task.title


def _read_offer(source: str) -> dict[str, Any]:
    """Read the arguments of an initiate from a file or standard input."""
    from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, parse_json

    try:
        value = parse_json(read_source(source, MAX_BYTES), MAX_BYTES)
    except StrictJsonError as error:
        where = f" at {error.path}" if error.path else ""
        raise_usage_error(f"{source} is not JSON that can be trusted{where}: {error.reason}")
    if not isinstance(value, dict):
        raise_usage_error(f"{source} is no JSON object: it has to hold the input of acp_handoff")
    arguments = cast(dict[str, Any], value)
    if arguments.pop("action", "initiate") != "initiate":
        raise_usage_error(f"{source} asks for another action: use `dragoman call acp_handoff`")
    return arguments


_WORK_STATUS = ("not_started", "in_progress", "blocked", "review")

INITIATE = OperationCommand(
    "initiate",
    OPERATION,
    """Offer work that you own to another agent.

    A package has at least a summary, a next step and one criterion. It does not change any more
    once it is offered, and its hash identifies it. The work stays yours until the recipient
    activates.

    It comes from options, from a file, which may have all that `acp_handoff` takes, or both.""",
    'dragoman handoff initiate --as ada --to bob --task fix-login --summary "half done" '
    '--criterion "all tests pass" --next-step "write the tests"',
    fields=(
        Field("", "", "FILE|-", "The input of `acp_handoff`, as JSON; options override it."),
        Field("to_agent", "--to", "NAME", "The recipient."),
        Field("task.task_id", "--task", "ID", "The task; an unknown one is made."),
        Field("task.title", "--title", "TEXT", "Its title; else the task's."),
        Field("task.objective", "--objective", "TEXT", "Its objective; else its title."),
        Field(
            "task.success_criteria",
            "--criterion",
            "TEXT",
            "A criterion of success; repeatable.",
            many=True,
        ),
        Field("context.summary", "--summary", "TEXT", "A summary of the present state."),
        Field("work_state.next_step", "--next-step", "TEXT", "What to do first."),
        Field(
            "work_state.status",
            "--state",
            "",
            "How far the work is; else not_started.",
            choices=_WORK_STATUS,
        ),
        Field(
            "task.priority",
            "--priority",
            "",
            "Its priority; else normal.",
            choices=get_args(Priority),
        ),
        Field(
            "artifacts",
            "--artifact",
            "PATH",
            "An artifact, beneath an artifact root; repeatable.",
            parse=parse_artifact,
            many=True,
        ),
        Field("task.deadline", "--deadline", "RFC3339", "By when it is to be done."),
        Field(
            "policy.requires_human_approval",
            "--needs-approval",
            "",
            "A person has to approve it first.",
        ),
        Field("supersedes", "--supersedes", "ID", "The handoff that this one supersedes."),
        Field("reason", "--reason", "TEXT", "Why it is handed over."),
        Field("teamspace_id", "--teamspace", "NAME", "Its teamspace."),
        Field("thread_id", "--thread", "ID", "The thread that it belongs to."),
        Field("handoff_id", "--id", "ID", "An id of your own; else the hub gives it one."),
    ),
    complete=_complete_offer,
    headline=_HEADLINE,
)

LIST = OperationCommand(
    "list",
    OPERATION,
    "List handoffs, newest first, a page at a time.",
    "dragoman handoff list --status proposed --to bob",
    fields=(
        Field("status", "--status", "", "Only in this state.", choices=get_args(HandoffStatus)),
        Field("task_id", "--task", "TASK", "Only of this task, by any name."),
        Field("from_agent", "--from", "NAME", "Only from this one."),
        Field("to_agent", "--to", "NAME", "Only to this one."),
        Field("teamspace_id", "--teamspace", "NAME", "Only of this one."),
        Field("cursor", "--before", "CURSOR", "`cursor` of the page before.", range=(0, None)),
        Field("limit", "--limit", "N", "How many at most.", range=(1, MAX_PAGE), default=50),
    ),
    fixed={"action": "query"},
    writes=False,
    columns={
        "ID": "{handoff_id}",
        "STATUS": "{status}",
        "TASK": "{task_id}",
        "FROM": "{from_agent}",
        "TO": "{to_agent}",
        "DUE BY": "{?escalated}late|{!escalated}{due_by}",
        "TITLE": "{title:60}",
    },
    styles=_STATUS_STYLES,
)

# --- show -------------------------------------------------------------------------------------


def show(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Show a handoff, and what it waits for.

    Its package, its checks, and the notes on it.

    \b
    Examples:
      dragoman handoff show fix-login-1
      dragoman handoff show fix-login-1 --json
    """
    from dragoman.engine.schemas.handoffs import handoff_detail

    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        summary = _diagnose(directory, handoff).summary
    detail: dict[str, Any] = to_builtins(handoff_detail(handoff))

    def show(screen: Screen) -> None:
        print_fields(screen, detail)
        screen.line(("next: ", "bold"), summary)

    return CommandResult(detail, show)


# --- diagnose ---------------------------------------------------------------------------------


def diagnose(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Say why a handoff does not go on.

    Who must act, by when, and with which command.

    \b
    Example:
      dragoman handoff diagnose fix-login-1
    """
    with context.open_for_reading() as directory:
        diagnosis = _diagnose(directory, load_handoff(context, directory, id))
    return CommandResult(to_builtins(diagnosis), lambda screen: print_diagnosis(diagnosis, screen))


def _diagnose(directory: DataDirectory, handoff: "Handoff") -> "HandoffDiagnosis":
    from dragoman.engine.handoff_diagnosis import diagnose_handoff

    store, now = directory.hub.store, directory.hub.clock.now()
    return diagnose_handoff(store, handoff, now, directory.settings.teamspaces)


def print_diagnosis(diagnosis: "HandoffDiagnosis", screen: Screen) -> None:
    """Print why a handoff is stuck, who has to act, by when, and with which command."""
    style = _STATUS_STYLES[diagnosis.status]
    screen.line((diagnosis.handoff_id, "bold"), "  ", (diagnosis.status, style))
    screen.line(f"  {diagnosis.summary}")
    if diagnosis.late:
        screen.line("  ", ("late", "red"), f": it should have gone on by {diagnosis.due_by}")
    elif diagnosis.due_by is not None:
        screen.line(f"  by {diagnosis.due_by}")
    for step in diagnosis.steps:
        default = "a person" if step.action in ("approve", "deny") else "a coordinator"
        who = " or ".join(step.who) or default
        screen.line("  ", (f"{who} can {step.action}: ", "bold"), step.command)
    for finding in diagnosis.findings:
        screen.line("  ", ("look: ", "yellow"), finding)


COMMANDS = (
    *make_commands((INITIATE, *STEPS, LIST)),
    CliCommand("show", show),
    CliCommand("diagnose", diagnose),
)
