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
    format_aof_id,
    handoff_stream,
    intent_stream,
    is_aof_id,
    mail_stream,
    reputation_stream,
    task_stream,
    trace_stream,
    turns_stream,
)
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.intent import INTENT_ALIAS_KIND as INTENT
from dragoman.engine.request import Request
from dragoman.engine.unit import Unit


def preload(unit: Unit, requests: Sequence[Request], now: int, *, rerun: bool) -> None:
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
            streams_of = _STREAMS_OF_COMMAND.get(type(command))
            if streams_of is None and (about := command.target_task):
                streams["task:" + about] = None
                continue
            if streams_of is not None:
                streams.update(dict.fromkeys(streams_of(command, request.id)))
            if isinstance(command, ClaimTask):
                claims += 1
            elif isinstance(command, CreateTask | DelegateIntent):
                creations.append(command)
                names += _delegation_request_id(command, request.id)
            elif isinstance(command, RecordTrace | RecordTurn):
                streams[agent_stream(request.actor.name)] = None
                logs += _log_keys(command)
        if not request.commands[0].target_task:
            streams[request.actor.stream] = None
    new_ids = _new_ids(unit, creations, now)
    streams.update(dict.fromkeys(map(task_stream, new_ids)))
    unit.set_claim_count(claims)
    unit.load_streams(streams)
    unit.load_aliases((*new_ids, *_alias_names(streams), *names))
    unit.load_log_rows(logs)
    if rerun:
        unit.load_answers(map(unit.answer_key, requests))


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
                new_ids.append(format_aof_id(day, number))
    return new_ids


def _delegation_request_id(command: CreateTask | DelegateIntent, cause: str) -> Iterator[str]:
    """The id that the request of a delegation will get, if it is not in use."""
    if isinstance(command, DelegateIntent):
        yield command.request_id or f"{command.id or cause}.1"


def _alias_names(streams: Iterable[str]) -> Iterator[str]:
    """The names of tasks that are called KIND:NAME, by which aliases are looked up."""
    for stream in streams:
        if stream.startswith("task:") and stream.count(":") > 1:
            yield stream.split(":", 2)[2]


# Streams that a command names or creates. What is given no name gets that of its request, or one
# made of it.


def _streams_of_adoption(command: AdoptTask, _: str) -> Iterator[str]:
    yield from map(task_stream, (command.name, f"{command.kind}:{command.name}"))


def _streams_of_proposal(command: ProposeHandoff, cause: str) -> Iterator[str]:
    yield task_stream(command.task)
    yield agent_stream(command.recipient)
    yield handoff_stream(command.id or cause)
    yield mail_stream(f"{cause}.handoff.initiate")


def _streams_of_handoff_command(command: HandoffCommand, cause: str) -> Iterator[str]:
    yield handoff_stream(command.handoff)
    if isinstance(command, AcceptHandoff | CompleteHandoff):
        yield mail_stream(f"{cause}.{command_name(command)}")


def _streams_of_trace_event(command: RecordTrace, _: str) -> Iterator[str]:
    yield trace_stream(command.session)


def _streams_of_turn(command: RecordTurn, _: str) -> Iterator[str]:
    yield from (task_stream(command.task), turns_stream(command.task))


def _log_keys(command: RecordTrace | RecordTurn) -> Iterator[str]:
    """The keys of log rows that show a repeat; that of a turn is known only once its task is."""
    if isinstance(command, RecordTrace):
        yield f"event:{command.event_id.lower()}"


_MailMark = ReadMail | AckMail | AnswerMail | EscalateMail


def _streams_of_mail(command: PostMail, cause: str) -> Iterator[str]:
    yield from map(agent_stream, (*command.to, *command.cc, *command.copied))
    yield from map(mail_stream, filter(None, (command.id or cause, command.reply_to)))
    if command.bead:
        yield task_stream(command.bead)


def _streams_of_mail_mark(command: _MailMark, _: str) -> Iterator[str]:
    yield mail_stream(command.mail)


def _streams_of_delegation(command: DelegateIntent, cause: str) -> Iterator[str]:
    id = command.id or cause
    yield from map(intent_stream, filter(None, (id, command.follows)))
    yield from map(task_stream, (id, f"{INTENT}:{id}"))
    for candidate in command.candidates[:1]:  # the others are rarely needed
        yield agent_stream(candidate.agent)
        yield reputation_stream(candidate.agent)


def _streams_of_result(command: ReceiveResult | UpdateIntent, _: str) -> Iterator[str]:
    yield intent_stream(command.intent)
    yield task_stream(command.target_task)
    yield reputation_stream(command.agent)


_STREAMS_OF_COMMAND: dict[type[AnyCommand], Callable[[Any, str], Iterator[str]]] = {
    AdoptTask: _streams_of_adoption,
    ProposeHandoff: _streams_of_proposal,
    PostMail: _streams_of_mail,
    ReadMail: _streams_of_mail_mark,
    AckMail: _streams_of_mail_mark,
    AnswerMail: _streams_of_mail_mark,
    EscalateMail: _streams_of_mail_mark,
    DelegateIntent: _streams_of_delegation,
    ReceiveResult: _streams_of_result,
    UpdateIntent: _streams_of_result,
    RecordTrace: _streams_of_trace_event,
    RecordTurn: _streams_of_turn,
    **{
        one: _streams_of_handoff_command
        for one in get_args(AnyCommand)
        if issubclass(one, HandoffCommand)
    },
}
"""Command -> the streams that it names or creates, where that is more than its task's."""
