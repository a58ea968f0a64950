"""One request inside a unit: answered before, or decided command by command, all or none."""

from hashlib import blake2b

import msgspec

from dragoman.core.actors import record_refusal
from dragoman.core.commands import AnyCommand, TaskCommand, command_name
from dragoman.core.decide import decide, renewal
from dragoman.core.errors import Refusal
from dragoman.core.ids import task_stream
from dragoman.core.reading import Receipt
from dragoman.core.task import Task
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.engine.unit import Unit

_receipts = msgspec.json.Decoder(tuple[Receipt, ...])
_encode = msgspec.json.Encoder().encode


def execute(unit: Unit, request: Request, now: int, secret: bytes, *, rerun: bool) -> Outcome:
    """Decide and record a request. A rerun looks first whether an earlier run was committed."""
    unit.begin(request)
    scope = _scope(unit, request)
    key = request.key or request.id
    if request.key or rerun:
        repeat = _repeat(unit, request, scope, key, now, secret)
        if isinstance(repeat, Refusal):
            _record_refusal(unit, request, request.commands[0], repeat, now)
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
    outcome = Accepted(tuple(receipts))
    if unit.has_recorded():
        unit.remember(scope, key, _fingerprint(request, secret), _encode(outcome.receipts))
    return outcome


def _scope(unit: Unit, request: Request) -> str:
    """The stream in which the request's key is unique: its target, or else its actor."""
    first = request.commands[0]
    if isinstance(first, TaskCommand) and first.task:
        task = unit.task(first.task)
        if isinstance(task, Task):
            return task_stream(task.id)
    return request.actor.stream


def _repeat(
    unit: Unit, request: Request, scope: str, key: str, now: int, secret: bytes
) -> Outcome | None:
    """The first answer to this key; a sign of life all the same (S-IDEM)."""
    answer = unit.answered(scope, key)
    if answer is None:
        return None
    if answer.fingerprint != _fingerprint(request, secret):
        return Refusal("key_reused", f"the key {key} was used before, for a different request")
    for command in request.commands:
        lease = renewal(command, unit, now)
        if lease is not None:
            unit.renew(lease)
    return Accepted(_receipts.decode(answer.answer), repeated=True)


def _record_refusal(
    unit: Unit, request: Request, command: AnyCommand, refusal: Refusal, now: int
) -> None:
    stream = request.actor.stream
    target = command.task if isinstance(command, TaskCommand) else ""
    event = record_refusal(unit.refusals(stream), command_name(command), target, refusal, now)
    if event is not None:
        unit.record(stream, event)


def _fingerprint(request: Request, secret: bytes) -> bytes:
    """What tells a repeat from a reuse of its key; keyed, so that it tells nothing of a secret."""
    return blake2b(_encode(request.commands), digest_size=16, key=secret).digest()
