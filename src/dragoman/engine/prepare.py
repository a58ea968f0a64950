"""What a batch is about to need, read in a few strokes instead of one by one."""

from collections.abc import Iterator, Sequence

from dragoman.core.commands import (
    AckMail,
    AnswerMail,
    ClaimTask,
    CreateTask,
    EscalateMail,
    PostMail,
    ReadMail,
    RecordTrace,
    RecordTurn,
)
from dragoman.core.ids import (
    agent_stream,
    aof_id,
    is_aof_id,
    mail_stream,
    task_stream,
    trace_stream,
    turns_stream,
)
from dragoman.core.moments import to_rfc3339
from dragoman.engine.request import Request
from dragoman.engine.unit import Unit


def prepare(unit: Unit, requests: Sequence[Request], now: int, *, rerun: bool) -> None:
    """Load what the requests name outright and the ids that new tasks will get.

    Only a help: whatever is missing is read when it is asked for. A rerun also looks what was
    answered before: by an earlier run whose outcome is unknown, or to an earlier request.
    """
    streams: dict[str, None] = {}
    creations: list[CreateTask] = []
    logs: list[str] = []
    claims = 0
    for request in requests:
        for command in (*request.commands, *request.effect):
            if about := command.about:
                streams["task:" + about] = None
            elif type(command) is CreateTask:
                creations.append(command)
            elif type(command) is ClaimTask:
                claims += 1
            elif isinstance(command, _LetterCommand):
                streams.update(dict.fromkeys(_of_letter(command)))
            elif isinstance(command, RecordTrace | RecordTurn):
                streams.update(dict.fromkeys(_of_trace(command, request)))
                logs += _keys(command)
        if not request.commands[0].about:
            streams[request.actor.stream] = None
    new_ids = _new_ids(unit, creations, now)
    streams.update(dict.fromkeys(map(task_stream, new_ids)))
    unit.expect_claims(claims)
    unit.load_streams(streams)
    unit.load_names(new_ids)
    unit.load_logs(logs)
    if rerun:
        unit.load_answers(map(unit.answer_place, requests))


def _new_ids(unit: Unit, creations: Sequence[CreateTask], now: int) -> list[str]:
    new_ids: list[str] = []
    if creations:
        day = to_rfc3339(now)[:10]
        number = unit.last_number(day)
        for command in creations:
            if command.id:
                new_ids.append(command.id)
            if not is_aof_id(command.id):
                number += 1
                new_ids.append(aof_id(day, number))
    return new_ids


def _of_trace(command: RecordTrace | RecordTurn, request: Request) -> Iterator[str]:
    """The streams that a turn or an event names."""
    yield agent_stream(request.actor.name)
    if isinstance(command, RecordTrace):
        yield trace_stream(command.session)
        return
    yield from (task_stream(command.task), turns_stream(command.task))


def _keys(command: RecordTrace | RecordTurn) -> Iterator[str]:
    """By what it is known whether it was recorded before; of a turn only its task tells."""
    if isinstance(command, RecordTrace):
        yield f"event:{command.event_id.lower()}"


_LetterCommand = PostMail | ReadMail | AckMail | AnswerMail | EscalateMail


def _of_letter(command: _LetterCommand) -> Iterator[str]:
    """The streams that a command about a letter names."""
    if not isinstance(command, PostMail):
        yield mail_stream(command.mail)
        return
    yield from map(agent_stream, (*command.to, *command.cc, *command.copied))
    yield from map(mail_stream, filter(None, (command.id, command.reply_to)))
    if command.bead:
        yield task_stream(command.bead)
