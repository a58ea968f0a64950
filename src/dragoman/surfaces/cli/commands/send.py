"""`dragoman send`, `call` and `session-end`: messages of any dialect, and operations by name."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

from dragoman.core.attempt import EndAttempt, ReportOutcome
from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.base import Command
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import handoff_stream
from dragoman.core.mail import PostMail
from dragoman.core.task_state import UpdateTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.surfaces.cli.command import CliCommand, SourceArgument, argument, option
from dragoman.surfaces.cli.context import STANDARD_INPUT, CommandContext, CommandResult, read_source
from dragoman.surfaces.cli.render import Screen

if TYPE_CHECKING:
    from dragoman.core.read import Receipt
    from dragoman.engine.ports import Store
    from dragoman.engine.queries.tasks import TaskView
    from dragoman.engine.request import Accepted


# --- send -------------------------------------------------------------------------------------


def send(context: CommandContext, source: SourceArgument = STANDARD_INPUT) -> CommandResult:
    """Send a message in any dialect, and say what came of it.

    The hub finds out which dialect it is. Without --as the sender is whoever the message names, or
    you if it names nobody; with --as it must be that agent. A message that was refused is on
    record, with the reason; equal refusals within a minute are recorded once.

    \b
    Examples:
      dragoman send report.json --as swe-backend
      dragoman send < message.txt
    """
    from dragoman.engine.lint import explain_unrecognized
    from dragoman.engine.operation import max_message_bytes
    from dragoman.engine.request import Rejected

    message = read_source(source, max_message_bytes(context.wiring.dialects()))
    with context.open_for_writing(create_missing=True) as directory:
        name = context.acting_agent()
        speaker = context.actor(directory, name) if name else None
        person = context.actor(directory, "")
        answer = directory.router.send(
            message, speaker=speaker, via=context.message_via, default_actor=person
        )
        if answer is None:
            unrecognized = explain_unrecognized(message, directory.router.dialects)
            raise Refused(Refusal(unrecognized.code, unrecognized.detail))
        if isinstance(answer, Rejected):
            return context.rejection_result(answer, in_dialect=True)
        effect_lines = tuple(describe_effects(directory.hub.store, answer))
    tasks = {receipt.task: receipt.status for receipt in answer.receipts if receipt.task}
    data: dict[str, object] = {
        "dialect": answer.dialect,
        "type": answer.kind,
        "agent": answer.actor,
        "reply": answer.reply,
        "tasks": [{"id": task, "status": status} for task, status in tasks.items()],
        "effects": effect_lines,
        "warnings": answer.warnings,
        "repeated": answer.repeated,
    }

    def show(screen: Screen) -> None:
        again = ", sent before: nothing was added" if answer.repeated else ""
        screen.line((answer.kind, "bold"), f" from {answer.actor}{again}")
        for effect in effect_lines:
            screen.line(f"  {effect}")
        for task, status in tasks.items():
            screen.line(f"  {task} {'was' if answer.repeated else 'is'} {status}")
        if not answer.receipts:
            screen.json(answer.reply)  # it was a query
        for warning in answer.warnings:
            screen.line("  ", ("warning: ", "yellow"), warning)

    return CommandResult(data, show)


# --- call, session-end ------------------------------------------------------------------------


def call(
    context: CommandContext,
    operation: Annotated[str, argument("OPERATION", "Its name.")],
    arguments: Annotated[str, argument("JSON|-", "Its arguments; `-`: standard input.")] = "{}",
) -> int:
    """Call an operation or tool of any dialect.

    Its reply is printed as JSON. There are, for example, aof_task_complete, aof_task_update,
    session_end, acp_handoff. A refusal is printed as an object with its code, in the form of its
    dialect if that has one for it, and ends the command with 1. Warnings (a secret was masked, no
    task was changed) stand on standard error.

    \b
    Examples:
      dragoman call aof_task_update --as ada '{"taskId":"TASK-2026-02-09-001","progress":"half"}'
      dragoman call session_end '{"sessionId":"s-1"}'
    """
    from dragoman.engine.operation import max_message_bytes
    from dragoman.engine.request import Rejected

    json_text: bytes | str = arguments
    if arguments == STANDARD_INPUT:
        json_text = read_source(arguments, max_message_bytes(context.wiring.dialects()))
    with context.open_for_writing(create_missing=True) as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call(operation, json_text, actor)
    if isinstance(answer, Rejected):
        reply: dict[str, object] = answer.reply or {}
        context.out.json(
            {**reply, "ok": False, **context.rejection_result(answer, in_dialect=True).data}
        )
        return 1
    # The reply has the dialect's own form, so warnings go to standard error.
    for warning in answer.warnings:
        context.err.line(("warning: ", "yellow"), warning)
    context.out.json(answer.reply)
    return 0


def session_end(
    context: CommandContext,
    session: Annotated[
        str, option("--session", "NAME", "Whose attempts end; else all that have reported.")
    ] = "",
) -> CommandResult:
    """End a session: what its agent has reported moves its tasks.

    An attempt that has reported nothing is left as it is: its lease decides.

    \b
    Example:
      dragoman session-end --session s-1
    """
    from dragoman.engine.request import Rejected

    arguments = {"sessionId": session} if session else {}
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call("session_end", arguments, actor)
        if isinstance(answer, Rejected):
            return context.rejection_result(answer, in_dialect=True)
        effect_lines = tuple(describe_effects(directory.hub.store, answer))

    def show(screen: Screen) -> None:
        for effect in effect_lines:
            screen.line(effect)
        if not effect_lines:
            by = "" if actor.role in MAY_DISPATCH else f" by {actor.name}"
            held = f"no task is held{by} in a session {session!a}"
            screen.line(f"{held if session else 'no attempt has reported'}: nothing was changed")

    return CommandResult(answer.reply, show)


# --- effects of commands ----------------------------------------------------------------------

_HANDOFF_PREFIX = handoff_stream("")


def describe_effects(store: "Store", accepted: "Accepted") -> Iterator[str]:
    """Sentences on what each command of a message did or will do; none for a repeat."""
    from dragoman.engine.queries.tasks import find_task

    if accepted.repeated:
        return
    for command, receipt in zip(accepted.commands, accepted.receipts, strict=True):
        if isinstance(command, PostMail):
            yield _mail_posted_text(command, receipt)
            continue
        if receipt.stream.startswith(_HANDOFF_PREFIX):
            yield f"handoff {receipt.stream.removeprefix(_HANDOFF_PREFIX)} is {receipt.state}"
            continue
        view = find_task(store, receipt.task)
        describe = EFFECT_TEXT.get(type(command))
        text = (
            describe(command, receipt, view) if describe and not isinstance(view, Refusal) else ""
        )
        if text:
            yield text


def _mail_posted_text(command: PostMail, receipt: "Receipt") -> str:
    return f"letter {receipt.stream.partition(':')[2]} is in the inbox of {', '.join(command.to)}"


def _reported_text(command: ReportOutcome, receipt: "Receipt", view: "TaskView") -> str:
    if receipt.is_no_op:
        return f"{receipt.task} was {receipt.status} already: the report changes nothing"
    if receipt.status == "in-progress":
        return f"{command.outcome} is on record: {receipt.task} moves when {_report_trigger(view)}"
    return f"{command.outcome} is on record and {receipt.task} has moved: {receipt.status}"


def _updated_text(command: UpdateTask, _: "Receipt", __: "TaskView") -> str:
    if command.to is not None:
        return ""  # the status is printed anyway, and an illegal transition is a warning
    has_text = bool(command.progress or command.notes or command.blockers)
    return "written into the work log" if has_text else "nothing was changed"


def _session_ended_text(_: EndAttempt, receipt: "Receipt", view: "TaskView") -> str:
    if receipt.warning:  # the session had lost the lease before
        by_report = "`dragoman tick` decides by what was reported until then"
        return f"{receipt.task} is {receipt.status}: {receipt.warning}; {by_report}"
    if receipt.status == "in-progress" and view.lease is not None:
        until = to_rfc3339(view.lease.expires_at)
        return f"{receipt.task} has no report: it stays in-progress until its lease ends ({until})"
    return f"{receipt.task} is {receipt.status}"


def _report_trigger(view: "TaskView") -> str:
    """The event that lets a report take effect."""
    lease = view.lease
    if lease is None:  # another command has ended the attempt meanwhile
        return "its attempt is over"
    return f"session {lease.session} is ended, or its lease ends ({to_rfc3339(lease.expires_at)})"


EFFECT_TEXT: dict[type[Command], Callable[[Any, Any, Any], str]] = {
    ReportOutcome: _reported_text,
    UpdateTask: _updated_text,
    EndAttempt: _session_ended_text,
}
"""Command -> its sentence, or empty; warnings are printed separately."""


COMMANDS = (
    CliCommand("send", send),
    CliCommand("call", call),
    CliCommand("session-end", session_end),
)
