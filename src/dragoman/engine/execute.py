"""One request inside a unit: decided command by command, all or none; or answered before.

A first run does not look whether its key was answered before, because it hardly ever was. If the
request is accepted, the store refuses a second answer to a key, and the engine runs it again,
looking. If it is refused, it is looked up here.
"""

import msgspec

from dragoman.core.actors import record_received, record_refusal
from dragoman.core.commands import AnyCommand, command_name
from dragoman.core.decide import decide, renewal
from dragoman.core.errors import Refusal
from dragoman.core.events import MessageReceived
from dragoman.core.ids import check_key
from dragoman.core.reading import Receipt
from dragoman.engine.ports import Answer
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.engine.unit import Unit
from dragoman.text.digest import keyed_digest

_receipts = msgspec.json.Decoder(tuple[Receipt, ...])
_encode = msgspec.json.Encoder().encode


def execute(unit: Unit, request: Request, now: int, secret: bytes) -> Outcome:
    """Decide and record a request."""
    place = unit.begin(request)
    scope, key = place
    if place in unit.answered:
        return _repeat(unit, request, unit.answered[place], now, secret)
    malformed = check_key(key) or unit.hear(request.said)
    if malformed is not None:
        return _refused(unit, request, request.commands[0], malformed, now)
    receipts: list[Receipt] = []
    for command in request.commands:
        decision = decide(command, unit, now)
        if isinstance(decision, Refusal):
            unit.undo()
            return _looked_up(unit, request, place, now, secret) or _refused(
                unit, request, command, decision, now
            )
        unit.apply(decision)
        receipts.append(decision.receipt)
    if request.heard is not None and not unit.has_recorded():
        _received(unit, request, request.heard, now)
    if request.key or unit.has_recorded():
        unit.remember(scope, key, _fingerprint(request, secret), _encode(receipts))
    return Accepted(tuple(receipts))


def _looked_up(
    unit: Unit, request: Request, place: tuple[str, str], now: int, secret: bytes
) -> Outcome | None:
    """What a request that would be refused now was answered when it was not."""
    if not request.key:
        return None
    unit.load_answers([place])
    answer = unit.answered.get(place)
    return _repeat(unit, request, answer, now, secret) if answer else None


def _repeat(unit: Unit, request: Request, answer: Answer, now: int, secret: bytes) -> Outcome:
    """The first answer to this key; a sign of life all the same (S-IDEM)."""
    if answer.fingerprint != _fingerprint(request, secret):
        return _refused(
            unit,
            request,
            request.commands[0],
            Refusal("key_reused", f"the key {answer.key} was used before, for another request"),
            now,
        )
    for command in request.commands:
        lease = renewal(command, unit, now)
        if lease is not None:
            unit.renew(lease)
    return Accepted(_receipts.decode(answer.answer), repeated=True)


def _refused(
    unit: Unit, request: Request, command: AnyCommand, refusal: Refusal, now: int
) -> Refusal:
    """The refusal, recorded with its actor."""
    stream = request.actor.stream
    said = b"" if request.said is msgspec.UNSET else bytes(request.said)
    event = record_refusal(
        unit.record_of(stream), command_name(command), command.about, refusal, now, said
    )
    if event is not None:
        unit.record(stream, event)
    return refusal


def _received(unit: Unit, request: Request, heard: MessageReceived, now: int) -> None:
    """A message that changed nothing, recorded with its actor."""
    stream = request.actor.stream
    event = record_received(unit.record_of(stream), heard, now)
    if event is not None:
        unit.record(stream, event)


def _fingerprint(request: Request, secret: bytes) -> bytes:
    """What tells a repeat from a reuse of its key; keyed, so that it tells nothing of a secret."""
    return keyed_digest(secret, _encode((request.actor.label, _asked(request))))


def _asked(request: Request) -> object:
    """What a repeat has in common with the first time.

    A key that is made of the content says it all. Under a key of the caller's own the words count
    where there are some: what was found out beside them, when they were translated, may differ.
    """
    if request.per_attempt:
        return ()
    return request.commands if request.said is msgspec.UNSET else request.said
