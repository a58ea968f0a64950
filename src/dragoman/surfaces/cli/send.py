"""`dragoman send`: a message of any dialect, as an agent would send it."""

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.effects import effects, statuses_now
from dragoman.surfaces.cli.reading import STANDARD_INPUT, SourceArgument, read_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb


def send(call: Call, source: SourceArgument = STANDARD_INPUT) -> Answer:
    """Send a message in any dialect, and say what came of it.

    The hub finds out which dialect it is. Without --as the sender is whoever the message names, or
    you if it names nobody; with --as it must be that agent. A message that was refused is on
    record, with the reason; equal refusals within a minute are recorded once.

    \b
    Examples:
      dragoman send report.json --as swe-backend
      dragoman send < message.txt
    """
    from dragoman.engine.nobodys import why_nobodys
    from dragoman.engine.operation import longest_message
    from dragoman.engine.plan import Turned

    message = read_source(source, longest_message(call.house.dialects()))
    with call.writing() as place:
        name = call.speaker()
        speaker = call.actor(place, name) if name else None
        person = call.actor(place, "")
        answer = place.interpreter.send(message, speaker=speaker, via=call.door, unnamed=person)
        if answer is None:
            fault = why_nobodys(message, place.interpreter.dialects)
            raise Refused(Refusal(fault.code, fault.detail))
        if isinstance(answer, Turned):
            return call.turned(answer, in_dialect=True)
        happened = tuple(effects(place.hub.store, answer))
        now = statuses_now(place.hub.store, answer)
    tasks = {receipt.task: receipt.status for receipt in answer.receipts if receipt.task}
    data: dict[str, object] = {
        "dialect": answer.dialect,
        "type": answer.kind,
        "agent": answer.actor,
        "reply": answer.reply,
        "tasks": [
            {"id": task, "status": status, "now": now.get(task, status)}
            for task, status in tasks.items()
        ],
        "effects": happened,
        "warnings": answer.warnings,
        "repeated": answer.repeated,
    }

    def show(screen: Screen) -> None:
        again = ", sent before: nothing was added" if answer.repeated else ""
        screen.line((answer.kind, "bold"), f" from {answer.actor}{again}")
        for effect in happened:
            screen.line(f"  {effect}")
        for task, status in tasks.items():
            current = now.get(task, status)
            then = f" (it was {status} then)" if current != status else ""
            screen.line(f"  {task} is {current}{then}")
        if not answer.receipts:
            screen.json(answer.reply)  # it was a query
        for warning in answer.warnings:
            screen.line("  ", ("warning: ", "yellow"), warning)

    return Answer(data, show)


VERBS = (Verb("send", send),)
