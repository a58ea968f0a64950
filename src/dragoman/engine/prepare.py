"""What a batch is about to need, read in a few strokes instead of one by one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, get_args

from dragoman.core.commands import (
    AcceptHandoff,
    AckMail,
    AdoptTask,
    AnswerMail,
    AnyCommand,
    ClaimTask,
    CompleteHandoff,
    CreateTask,
    DelegateIntent,
    EscalateMail,
    HandoffCommand,
    PostMail,
    ProposeHandoff,
    ReadMail,
    ReceiveResult,
    RecordTrace,
    RecordTurn,
    UpdateIntent,
    command_name,
)
from dragoman.core.ids import (
    agent_stream,
    aof_id,
    handoff_stream,
    intent_stream,
    is_aof_id,
    mail_stream,
    standing_stream,
    task_stream,
    trace_stream,
    turns_stream,
)
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.intent import KIND as INTENT
from dragoman.engine.request import Request
from dragoman.engine.unit import Unit


def prepare(unit: Unit, requests: Sequence[Request], now: int, *, rerun: bool) -> None:
    """Load the streams and names that the requests refer to, and the ids that new tasks will get.

    This only saves time: whatever is not loaded is read when it is asked for. A rerun also loads
    stored answers: an earlier run with unknown outcome, or an earlier request, may have left one.
    """
    streams: dict[str, None] = {}
    creations: list[CreateTask | DelegateIntent] = []
    names: list[str] = []
    logs: list[str] = []
    claims = 0
    for request in requests:
        for command in request.commands + request.effect:
            named = _NAMED.get(type(command))
            if named is None and (about := command.about):
                streams["task:" + about] = None
                continue
            if named is not None:
                streams.update(dict.fromkeys(named(command, request.id)))
            if isinstance(command, ClaimTask):
                claims += 1
            elif isinstance(command, CreateTask | DelegateIntent):
                creations.append(command)
                names += _request_id(command, request.id)
            elif isinstance(command, RecordTrace | RecordTurn):
                streams[agent_stream(request.actor.name)] = None
                logs += _keys(command)
        if not request.commands[0].about:
            streams[request.actor.stream] = None
    new_ids = _new_ids(unit, creations, now)
    streams.update(dict.fromkeys(map(task_stream, new_ids)))
    unit.expect_claims(claims)
    unit.load_streams(streams)
    unit.load_names((*new_ids, *_aliases(streams), *names))
    unit.load_logs(logs)
    if rerun:
        unit.load_answers(map(unit.answer_place, requests))


def _new_ids(unit: Unit, creations: Sequence[CreateTask | DelegateIntent], now: int) -> list[str]:
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


def _request_id(command: CreateTask | DelegateIntent, cause: str) -> Iterator[str]:
    """The id that the request of a delegation will get, if it is not in use."""
    if isinstance(command, DelegateIntent):
        yield command.request_id or f"{command.id or cause}.1"


def _aliases(streams: Iterable[str]) -> Iterator[str]:
    """The names of tasks that are called KIND:NAME, by which aliases are looked up."""
    for stream in streams:
        if stream.startswith("task:") and stream.count(":") > 1:
            yield stream.split(":", 2)[2]


# Streams that a command names or creates. What is given no name gets that of its request, or one
# made of it.


def _of_adoption(command: AdoptTask, _: str) -> Iterator[str]:
    yield from map(task_stream, (command.name, f"{command.kind}:{command.name}"))


def _of_offer(command: ProposeHandoff, cause: str) -> Iterator[str]:
    yield task_stream(command.task)
    yield agent_stream(command.recipient)
    yield handoff_stream(command.id or cause)
    yield mail_stream(f"{cause}.handoff.initiate")


def _of_handoff(command: HandoffCommand, cause: str) -> Iterator[str]:
    yield handoff_stream(command.handoff)
    if isinstance(command, AcceptHandoff | CompleteHandoff):
        yield mail_stream(f"{cause}.{command_name(command)}")


def _of_event(command: RecordTrace, _: str) -> Iterator[str]:
    yield trace_stream(command.session)


def _of_turn(command: RecordTurn, _: str) -> Iterator[str]:
    yield from (task_stream(command.task), turns_stream(command.task))


def _keys(command: RecordTrace | RecordTurn) -> Iterator[str]:
    """The keys of log rows that show a repeat; that of a turn is known only once its task is."""
    if isinstance(command, RecordTrace):
        yield f"event:{command.event_id.lower()}"


_MarksLetter = ReadMail | AckMail | AnswerMail | EscalateMail


def _of_letter(command: PostMail, cause: str) -> Iterator[str]:
    yield from map(agent_stream, (*command.to, *command.cc, *command.copied))
    yield from map(mail_stream, filter(None, (command.id or cause, command.reply_to)))
    if command.bead:
        yield task_stream(command.bead)


def _of_mark(command: _MarksLetter, _: str) -> Iterator[str]:
    yield mail_stream(command.mail)


def _of_delegation(command: DelegateIntent, cause: str) -> Iterator[str]:
    id = command.id or cause
    yield from map(intent_stream, filter(None, (id, command.follows)))
    yield from map(task_stream, (id, f"{INTENT}:{id}"))
    for candidate in command.candidates[:1]:  # the others are rarely needed
        yield agent_stream(candidate.agent)
        yield standing_stream(candidate.agent)


def _of_answer(command: ReceiveResult | UpdateIntent, _: str) -> Iterator[str]:
    yield intent_stream(command.intent)
    yield task_stream(command.about)
    yield standing_stream(command.agent)


_NAMED: dict[type[AnyCommand], Callable[[Any, str], Iterator[str]]] = {
    AdoptTask: _of_adoption,
    ProposeHandoff: _of_offer,
    PostMail: _of_letter,
    ReadMail: _of_mark,
    AckMail: _of_mark,
    AnswerMail: _of_mark,
    EscalateMail: _of_mark,
    DelegateIntent: _of_delegation,
    ReceiveResult: _of_answer,
    UpdateIntent: _of_answer,
    RecordTrace: _of_event,
    RecordTurn: _of_turn,
    **{one: _of_handoff for one in get_args(AnyCommand) if issubclass(one, HandoffCommand)},
}
"""Command -> the streams that it names or creates, where that is more than its task's."""
