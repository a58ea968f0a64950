"""Executes one request of a batch: decided command by command, all or none; or answered before.

A first run does not look whether its key was answered before, because it hardly ever was. If the
request is accepted, the store refuses a second answer to a key, and the engine runs it again,
looking. If it is refused, the key is looked up here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.core import ids
from dragoman.core.actor import (
    ActorRecord,
    MessageReceived,
    record_received_message,
    record_refusal,
)
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command, command_name
from dragoman.core.deciders import decide, renewal_by_activity
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    AcceptHandoff,
    CompleteHandoff,
    HandoffCommand,
    ProposeHandoff,
)
from dragoman.core.intent.state import DelegateIntent, ReceiveResult, UpdateIntent
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, PostMail, ReadMail
from dragoman.core.read import Decision, Receipt
from dragoman.core.task_state import INTENT_ALIAS_KIND as INTENT
from dragoman.core.task_state import AdoptTask, CreateTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.trace import RecordTrace, RecordTurn
from dragoman.engine.idempotency import AnswerKey, decode_answer
from dragoman.engine.ports import IdempotencyRecord
from dragoman.engine.request import SIGNED_KEY_PREFIX, Committed, Outcome, Request
from dragoman.engine.unit_of_work import EarlierAnswer, Unit

# --- loading what a batch names ---------------------------------------------------------------


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
                streams[ids.agent_stream(request.actor.name)] = None
                logs += _log_keys(command)
        streams[request.actor.stream] = None
    new_ids = _new_ids(unit, creations, now)
    streams.update(dict.fromkeys(map(ids.task_stream, new_ids)))
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
            if not ids.is_aof_id(command.id):
                number += 1
                new_ids.append(ids.format_aof_id(day, number))
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


def _log_keys(command: RecordTrace | RecordTurn) -> Iterator[str]:
    """The keys of log rows that show a repeat; that of a turn is known only once its task is."""
    if isinstance(command, RecordTrace):
        yield f"event:{command.event_id.lower()}"


def _streams_of_handoff_command(command: HandoffCommand, cause: str) -> Iterator[str]:
    yield ids.handoff_stream(command.handoff)
    if isinstance(command, AcceptHandoff | CompleteHandoff):
        yield ids.mail_stream(f"{cause}.{command_name(command)}")


def _streams_of_mail(command: PostMail, cause: str) -> Iterator[str]:
    yield from map(ids.agent_stream, (*command.to, *command.cc, *command.auto_copied))
    yield from map(ids.mail_stream, filter(None, (command.id or cause, command.reply_to)))
    if command.bead:
        yield ids.task_stream(command.bead)


def _streams_of_delegation(command: DelegateIntent, cause: str) -> Iterator[str]:
    id = command.id or cause
    yield from map(ids.intent_stream, filter(None, (id, command.follows)))
    yield from map(ids.task_stream, (id, f"{INTENT}:{id}"))
    for candidate in command.candidates[:1]:  # the others are rarely needed
        yield ids.agent_stream(candidate.agent)
        yield ids.reputation_stream(candidate.agent)


_STREAMS_OF_COMMAND: dict[type[Any], Callable[[Any, str], Iterable[str]]] = {
    AdoptTask: lambda command, _: map(
        ids.task_stream, (command.name, f"{command.kind}:{command.name}")
    ),
    ProposeHandoff: lambda command, cause: (
        ids.task_stream(command.task),
        ids.agent_stream(command.recipient),
        ids.handoff_stream(command.id or cause),
        ids.mail_stream(f"{cause}.handoff.initiate"),
    ),
    **dict.fromkeys(HandoffCommand.__subclasses__(), _streams_of_handoff_command),
    PostMail: _streams_of_mail,
    **dict.fromkeys(
        (ReadMail, AckMail, AnswerMail, EscalateMail),
        lambda command, _: (ids.mail_stream(command.mail),),
    ),
    DelegateIntent: _streams_of_delegation,
    **dict.fromkeys(
        (ReceiveResult, UpdateIntent),
        lambda command, _: (
            ids.intent_stream(command.intent),
            ids.task_stream(command.target_task),
            ids.reputation_stream(command.agent),
        ),
    ),
    RecordTrace: lambda command, _: (ids.trace_stream(command.session),),
    RecordTurn: lambda command, _: (ids.task_stream(command.task), ids.turns_stream(command.task)),
}
"""Command -> the streams that it names or creates, where that is more than its task's."""


# --- executing a request ----------------------------------------------------------------------

_is_repeat = attrgetter("is_repeat")

_EFFECT_ALREADY_TRIED = Refusal(
    "already_exists", "duplicate: its effect was tried the first time and is not tried again"
)

_ALREADY_COUNTED = "duplicate: already applied {then}, ignored"


def execute(unit: Unit, request: Request, now: int) -> Outcome:
    """Decide and record a request."""
    answer_key = unit.begin_request(request)
    answer = unit.answers.find(answer_key)
    if answer is not None:
        return _replay_if_same(unit, request, answer, now)
    malformed = ids.check_key(answer_key[1])
    if malformed is None and request.original_text is not UNSET:
        malformed = unit.set_original_text(request.original_text, request.commands)
    if malformed is not None:
        return _record_actor_refusal(unit, request, request.commands[0], malformed, now)
    sent_at = request.sent_at
    earlier = None if sent_at is None else unit.find_earlier_answer(request, sent_at)
    if earlier is not None:
        unit.set_undo_point()
    executed = _run_commands(unit, request.commands, now)
    if isinstance(executed, _RefusedCommand):
        return _find_earlier_answer(unit, request, answer_key, now) or _record_refusal(
            unit, request, executed, now
        )
    if earlier is not None:
        unit.undo()
        return _duplicate_of_attempt(unit, request, earlier, now)
    receipts = executed
    is_repeat = receipts[0].is_repeat and all(map(_is_repeat, receipts))
    declined = _run_effect(unit, request, receipts, now) if request.effect else None
    if request.receipt_event is not None and not is_repeat and not unit.has_recorded():
        _record_receipt(unit, request, request.receipt_event, now)
    last = receipts[-1]
    if request.key and not request.per_attempt and last.task:
        # How far the streams of its task and of its subject have come, so that a repeat shows them
        # as they were.
        version = unit.version(last.stream) if last.stream else 0
        receipts[-1] = replace(
            last, version=unit.version("task:" + last.task), stream_version=version
        )
    outcome = Committed(tuple(receipts), is_repeat, declined)
    if request.key or unit.has_recorded():
        unit.store_answer(answer_key, request, outcome)
        unit.note_actor()
    return outcome


def _run_effect(unit: Unit, request: Request, receipts: list[Receipt], now: int) -> Refusal | None:
    """Run the effect and add its receipts; or return the reason why there are none."""
    if all(map(_is_repeat, receipts)) and not receipts[0].record_key:
        # An event of a trace is different: its answer is where its task is now.
        return _EFFECT_ALREADY_TRIED
    unit.set_undo_point()
    effect = _run_commands(unit, request.effect, now)
    if isinstance(effect, _RefusedCommand):
        return _record_refusal(unit, request, effect, now)
    if not unit.has_changed():
        return _nothing_changed(effect)
    receipts += effect
    return None


def _nothing_changed(receipts: list[Receipt]) -> Refusal:
    """The refusal of an effect that was allowed but changed nothing."""
    receipt = receipts[-1]
    # A receipt without a task is the answer to a letter, which somebody else has given first.
    answered = f"letter {receipt.stream.partition(':')[2]} is already answered"
    state = f"{receipt.task} is already {receipt.status}" if receipt.task else answered
    return Refusal("nothing_changed", f"no effect: {state}")


class _RefusedCommand(Struct, frozen=True):
    """The command that was refused; nothing of its request stands."""

    command: Command
    refusal: Refusal
    decision: Decision | None = None
    """Set where the refusal is recorded with its subject, and not with its actor."""


def _run_commands(
    unit: Unit, commands: tuple[Command, ...], now: int
) -> list[Receipt] | _RefusedCommand:
    """Decide and record these commands: their receipts, or the refusal that undid all of them."""
    receipts: list[Receipt] = []
    for index, command in enumerate(commands):
        decision = decide(command, unit, now)
        if isinstance(decision, Refusal):
            unit.undo()
            where = index if len(commands) > 1 else None
            return _RefusedCommand(command, decision.with_command(where))
        if decision.refusal is not None:
            unit.undo()
            return _RefusedCommand(command, decision.refusal, decision)
        unit.apply(decision)
        receipt = decision.receipt
        receipts.append(_with_position(unit, receipt) if receipt.record_key else receipt)
    return receipts


def _with_position(unit: Unit, receipt: Receipt) -> Receipt:
    """The receipt of a turn or a trace event, with its position."""
    logged = unit.logged(receipt.record_key)
    return receipt if logged is None else replace(receipt, position=logged.position)


def _find_earlier_answer(
    unit: Unit, request: Request, answer_key: AnswerKey, now: int
) -> Outcome | None:
    """The stored answer, if a request that would be refused now was accepted before."""
    if not request.key:
        return None
    unit.load_answers([answer_key])
    answer = unit.answers.find(answer_key)
    return _replay_if_same(unit, request, answer, now) if answer else None


def _replay_if_same(unit: Unit, request: Request, answer: IdempotencyRecord, now: int) -> Outcome:
    """The first answer to this key, renewing the lease (S-IDEM); or a refusal, if the request is
    another one."""
    if not unit.answers.matches(answer, request):
        key = answer.key.removeprefix(SIGNED_KEY_PREFIX)
        return _record_actor_refusal(
            unit,
            request,
            request.commands[0],
            Refusal(
                "key_reused",
                f"the key {key} was used before: for another request, or for this one while the "
                "hub had other keys (`init --new-keys`). See what it did, then use a new key",
            ),
            now,
        )
    return _replay_answer(unit, request, answer, now)


def _duplicate_of_attempt(
    unit: Unit, request: Request, earlier: EarlierAnswer, now: int
) -> Committed:
    """The answer that a message got for its attempt, with a remark that it counts for that one."""
    replayed = _replay_answer(unit, request, earlier.answer, now)
    first, *others = replayed.receipts
    before = f"before attempt {earlier.current_attempt}"
    then = f"to attempt {earlier.attempt}" if earlier.attempt else before
    remark = _ALREADY_COUNTED.format(then=then)
    remarked = replace(first, warning="; ".join(filter(None, (first.warning, remark))))
    return replace(replayed, receipts=(remarked, *others))


def _replay_answer(unit: Unit, request: Request, answer: IdempotencyRecord, now: int) -> Committed:
    """The stored answer; a repeat still renews the lease of its sender."""
    for command in (*request.commands, *request.effect):
        lease = renewal_by_activity(command, unit, now)
        if lease is not None:
            unit.write_lease(lease)
    stored = decode_answer(answer)
    receipts = tuple(
        _with_position(unit, one) if one.record_key else one for one in stored.receipts
    )
    return replace(stored, receipts=receipts)


def _record_refusal(unit: Unit, request: Request, refused: _RefusedCommand, now: int) -> Refusal:
    """Record a refusal where it belongs."""
    if refused.decision is None:
        return _record_actor_refusal(unit, request, refused.command, refused.refusal, now)
    unit.apply(refused.decision)
    return refused.refusal


def _record_actor_refusal(
    unit: Unit, request: Request, command: Command, refusal: Refusal, now: int
) -> Refusal:
    """Record a refusal in the stream of its actor.

    The refusal of an effect is bounded by the entry that it was to follow: no other refusal stands
    for it, however alike they are.
    """
    stream = request.actor.stream
    original_text = b"" if request.original_text is UNSET else bytes(request.original_text)
    record = ActorRecord() if unit.has_recorded() else unit.actor_record(stream)
    event = record_refusal(
        record, command_name(command), command.target_task, refusal, now, original_text
    )
    if event is not None:
        unit.record(stream, event)
    return refusal


def _record_receipt(unit: Unit, request: Request, receipt: MessageReceived, now: int) -> None:
    """Record a message that changed nothing in the stream of its actor."""
    stream = request.actor.stream
    event = record_received_message(unit.actor_record(stream), receipt, now)
    if event is not None:
        unit.record(stream, event)
