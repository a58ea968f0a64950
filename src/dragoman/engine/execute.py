"""One request inside a unit: answered before, or decided command by command, all or none."""

from hashlib import sha256

import msgspec

from dragoman.core.actors import record_refusal
from dragoman.core.commands import AnyCommand, command_name
from dragoman.core.decide import decide, renewal
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_key
from dragoman.core.reading import Receipt
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.engine.unit import Unit

_receipts = msgspec.json.Decoder(tuple[Receipt, ...])
_encode = msgspec.json.Encoder().encode


def execute(unit: Unit, request: Request, now: int, secret: bytes, *, rerun: bool) -> Outcome:
    """Decide and record a request. A rerun looks first whether an earlier run was committed."""
    unit.begin(request)
    malformed = check_key(request.key) if request.key else None
    if malformed is not None:
        _record_refusal(unit, request, request.commands[0], malformed, now)
        return malformed
    scope = unit.scope(request.commands[0].about)
    if request.key or rerun:
        repeat = _repeat(unit, request, scope, now, secret)
        if repeat is not None:
            return repeat
    receipts: list[Receipt] = []
    for command in request.commands:
        decision = decide(command, unit, now)
        if isinstance(decision, Refusal):
            unit.undo()
            _record_refusal(unit, request, command, decision, now)
            return decision
        unit.apply(decision)
        receipts.append(decision.receipt)
    if request.key or unit.has_recorded():
        unit.remember(scope, request.answer_key, _fingerprint(request, secret), _encode(receipts))
    return Accepted(tuple(receipts))


def _repeat(unit: Unit, request: Request, scope: str, now: int, secret: bytes) -> Outcome | None:
    """The first answer to this key; a sign of life all the same (S-IDEM)."""
    answer = unit.answered(scope, request.answer_key)
    if answer is None:
        return None
    if answer.fingerprint != _fingerprint(request, secret):
        refusal = Refusal(
            "key_reused", f"the key {request.answer_key} was used before, for a different request"
        )
        _record_refusal(unit, request, request.commands[0], refusal, now)
        return refusal
    for command in request.commands:
        lease = renewal(command, unit, now)
        if lease is not None:
            unit.renew(lease)
    return Accepted(_receipts.decode(answer.answer), repeated=True)


def _record_refusal(
    unit: Unit, request: Request, command: AnyCommand, refusal: Refusal, now: int
) -> None:
    stream = request.actor.stream
    event = record_refusal(
        unit.refusals(stream), command_name(command), command.about, refusal, now
    )
    if event is not None:
        unit.record(stream, event)


def _fingerprint(request: Request, secret: bytes) -> bytes:
    """What tells a repeat from a reuse of its key; keyed, so that it tells nothing of a secret."""
    return sha256(secret + _encode(request.commands)).digest()[:16]
