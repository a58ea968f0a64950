"""`dragoman send`: a message of any dialect, as an agent would send it."""

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.effects import current_statuses, describe_effects
from dragoman.surfaces.cli.reading import STANDARD_INPUT, SourceArgument, read_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand


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
    from dragoman.engine.nobodys import explain_unrecognized
    from dragoman.engine.operation import max_message_bytes
    from dragoman.engine.plan import Rejected

    message = read_source(source, max_message_bytes(context.wiring.dialects()))
    with context.open_for_writing() as directory:
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
        statuses = current_statuses(directory.hub.store, answer)
    tasks = {receipt.task: receipt.status for receipt in answer.receipts if receipt.task}
    data: dict[str, object] = {
        "dialect": answer.dialect,
        "type": answer.kind,
        "agent": answer.actor,
        "reply": answer.reply,
        "tasks": [
            {"id": task, "status": status, "now": statuses.get(task, status)}
            for task, status in tasks.items()
        ],
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
            current = statuses.get(task, status)
            then = f" (it was {status} then)" if current != status else ""
            screen.line(f"  {task} is {current}{then}")
        if not answer.receipts:
            screen.json(answer.reply)  # it was a query
        for warning in answer.warnings:
            screen.line("  ", ("warning: ", "yellow"), warning)

    return CommandResult(data, show)


SEND_COMMANDS = (CliCommand("send", send),)
