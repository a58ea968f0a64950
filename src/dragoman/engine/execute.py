"""One request inside a unit: decided command by command, all or none; or answered before.

A first run does not look whether its key was answered before, because it hardly ever was. If the
request is accepted, the store refuses a second answer to a key, and the engine runs it again,
looking. If it is refused, it is looked up here.
"""

from operator import attrgetter

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.core.actors import ActorRecord, record_received, record_refusal
from dragoman.core.commands import AnyCommand, command_name
from dragoman.core.decide import decide, renewal
from dragoman.core.errors import Refusal
from dragoman.core.events import MessageReceived
from dragoman.core.ids import check_key
from dragoman.core.reading import Decision, Receipt
from dragoman.engine.answers import told_before
from dragoman.engine.ports import Answer
from dragoman.engine.request import SIGNED_KEY, Accepted, Outcome, Request
from dragoman.engine.snapshots import Place
from dragoman.engine.unit import Earlier, Unit

_was_before = attrgetter("before")

_TRIED_BEFORE = Refusal(
    "already_exists", "duplicate: its effect was tried the first time and is not tried again"
)

_COUNTED = "duplicate: already applied {then}, ignored"


def execute(unit: Unit, request: Request, now: int) -> Outcome:
    """Decide and record a request."""
    place = unit.begin(request)
    answer = unit.answers.find(place)
    if answer is not None:
        return _repeat(unit, request, answer, now)
    malformed = check_key(place[1])
    if malformed is None and request.said is not UNSET:
        malformed = unit.hear(request.said)
    if malformed is not None:
        return _refused(unit, request, request.commands[0], malformed, now)
    sent_at = request.sent_at
    earlier = None if sent_at is None else unit.answered_earlier(request, sent_at)
    if earlier is not None:
        unit.mark()
    done = _carried_out(unit, request.commands, now)
    if isinstance(done, _Stopped):
        return _looked_up(unit, request, place, now) or _told_no(unit, request, done, now)
    if earlier is not None:
        unit.undo()
        return _counted(unit, request, earlier, now)
    receipts = done
    was_said = receipts[0].before and all(map(_was_before, receipts))
    declined = _effected(unit, request, receipts, now) if request.effect else None
    if request.heard is not None and not was_said and not unit.has_recorded():
        _received(unit, request, request.heard, now)
    last = receipts[-1]
    if request.key and not request.per_attempt and last.task:
        # How far the streams of its task and of its subject have come, so that a repeat shows them
        # as they were.
        reached = unit.version(last.stream) if last.stream else 0
        receipts[-1] = replace(last, version=unit.version("task:" + last.task), reached=reached)
    outcome = Accepted(tuple(receipts), was_said, declined)
    if request.key or unit.has_recorded():
        unit.remember(place, request, outcome)
    return outcome


def _effected(unit: Unit, request: Request, receipts: list[Receipt], now: int) -> Refusal | None:
    """Run the effect and add its receipts; or return the reason why there are none."""
    if all(map(_was_before, receipts)) and not receipts[0].log:
        # An event of a trace is different: its answer is where its task is now.
        return _TRIED_BEFORE
    unit.mark()
    followed = _carried_out(unit, request.effect, now)
    if isinstance(followed, _Stopped):
        return _told_no(unit, request, followed, now)
    if not unit.has_changed():
        return _as_it_was(followed)
    receipts += followed
    return None


def _as_it_was(receipts: list[Receipt]) -> Refusal:
    """The refusal of an effect that was allowed but changed nothing."""
    told = receipts[-1]
    # A receipt without a task is the answer to a letter, which somebody else has given first.
    answered = f"letter {told.stream.partition(':')[2]} is already answered"
    stand = f"{told.task} is already {told.status}" if told.task else answered
    return Refusal("nothing_changed", f"no effect: {stand}")


class _Stopped(Struct, frozen=True):
    """The command that was refused; nothing of its request stands."""

    command: AnyCommand
    refusal: Refusal
    recorded: Decision | None = None
    """Set where the refusal is recorded with its subject, and not with its actor."""


def _carried_out(
    unit: Unit, commands: tuple[AnyCommand, ...], now: int
) -> list[Receipt] | _Stopped:
    """Decide and record these commands: their receipts, or the refusal that undid all of them."""
    receipts: list[Receipt] = []
    for command in commands:
        decision = decide(command, unit, now)
        if isinstance(decision, Refusal):
            unit.undo()
            return _Stopped(command, decision)
        if decision.refusal is not None:
            unit.undo()
            return _Stopped(command, decision.refusal, decision)
        unit.apply(decision)
        told = decision.receipt
        receipts.append(_placed(unit, told) if told.log else told)
    return receipts


def _placed(unit: Unit, receipt: Receipt) -> Receipt:
    """The receipt of a turn or a trace event, with its position."""
    known = unit.logged(receipt.log)
    return receipt if known is None else replace(receipt, position=known.position)


def _looked_up(unit: Unit, request: Request, place: Place, now: int) -> Outcome | None:
    """The stored answer, if a request that would be refused now was accepted before."""
    if not request.key:
        return None
    unit.load_answers([place])
    answer = unit.answers.find(place)
    return _repeat(unit, request, answer, now) if answer else None


def _repeat(unit: Unit, request: Request, answer: Answer, now: int) -> Outcome:
    """The first answer to this key, renewing the lease (S-IDEM); or a refusal, if the request is
    another one."""
    if not unit.answers.fits(answer, request):
        key = answer.key.removeprefix(SIGNED_KEY)
        return _refused(
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
    return _told_again(unit, request, answer, now)


def _counted(unit: Unit, request: Request, earlier: Earlier, now: int) -> Accepted:
    """The answer that a message got for its attempt, with a remark that it counts for that one."""
    told = _told_again(unit, request, earlier.answer, now)
    first, *others = told.receipts
    before = f"before attempt {earlier.present}"
    then = f"to attempt {earlier.attempt}" if earlier.attempt else before
    remark = _COUNTED.format(then=then)
    remarked = replace(first, remark="; ".join(filter(None, (first.remark, remark))))
    return replace(told, receipts=(remarked, *others))


def _told_again(unit: Unit, request: Request, answer: Answer, now: int) -> Accepted:
    """The stored answer; a repeat still renews the lease of its sender."""
    for command in (*request.commands, *request.effect):
        lease = renewal(command, unit, now)
        if lease is not None:
            unit.renew(lease)
    told = told_before(answer)
    receipts = tuple(_placed(unit, one) if one.log else one for one in told.receipts)
    return replace(told, receipts=receipts)


def _told_no(unit: Unit, request: Request, stopped: _Stopped, now: int) -> Refusal:
    """Record a refusal where it belongs."""
    if stopped.recorded is None:
        return _refused(unit, request, stopped.command, stopped.refusal, now)
    unit.apply(stopped.recorded)
    return stopped.refusal


def _refused(
    unit: Unit, request: Request, command: AnyCommand, refusal: Refusal, now: int
) -> Refusal:
    """Record a refusal in the stream of its actor.

    The refusal of an effect is bounded by the entry that it was to follow: no other refusal stands
    for it, however alike they are.
    """
    stream = request.actor.stream
    said = b"" if request.said is UNSET else bytes(request.said)
    record = ActorRecord() if unit.has_recorded() else unit.record_of(stream)
    event = record_refusal(record, command_name(command), command.about, refusal, now, said)
    if event is not None:
        unit.record(stream, event)
    return refusal


def _received(unit: Unit, request: Request, heard: MessageReceived, now: int) -> None:
    """Record a message that changed nothing in the stream of its actor."""
    stream = request.actor.stream
    event = record_received(unit.record_of(stream), heard, now)
    if event is not None:
        unit.record(stream, event)
