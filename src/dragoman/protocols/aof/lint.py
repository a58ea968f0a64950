"""Is this AOF/1? For developers of agents and their CI: every finding, with its place."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Raw, Struct
from msgspec.structs import fields

from dragoman.engine.faults import Fault
from dragoman.engine.operation import Linted
from dragoman.protocols.aof import check
from dragoman.protocols.aof.detect import Found, is_ours, unwrapped
from dragoman.protocols.aof.read import text_of
from dragoman.protocols.aof.translate import NOT_STRINGS, strings
from dragoman.protocols.aof.wire import (
    MESSAGES,
    Completion,
    HandoffRequested,
    Message,
    UnknownMessage,
)
from dragoman.text.strict_json import MOST_BYTES

_COST = "payload.cost"
_NOT_OURS = check.envelope_fault('this is not AOF/1, whose protocol is "aof"', "protocol")


def lint(value: Any, kind: str, strict: bool) -> Linted:
    """Lint one JSON value, bare or wrapped like any message.

    Strict linting also fails for what a hub accepts: fields that AOF/1 does not know, acceptance
    criteria that are taken as [], and a cost that counts as nothing. Otherwise these are listed,
    and the message is ok.
    """
    found = Found(Raw(), value) if is_ours(value) else unwrapped(value, MOST_BYTES)
    if found is None:
        return _linted(value, [_NOT_OURS], ())
    if found.fault is not None:
        return _linted(value, [check.envelope_fault(found.fault.reason, found.fault.path)], ())
    envelope = found.value
    shape = MESSAGES.get(text_of(envelope, "type"), UnknownMessage)
    misshapen = list(check.shape_faults(envelope, shape))
    message = check.salvaged(envelope, shape)
    more = [*_wrong_kind(envelope, kind), *_faults(message, envelope)]
    faults = [*misshapen, *check.apart_from(misshapen, more)]
    oddities = [*_strangers(envelope, message, ""), *_odd_criteria(message)]
    return _linted(envelope, faults + oddities * strict, oddities * (not strict))


def _faults(message: Message | UnknownMessage, envelope: Any) -> Iterator[Fault]:
    """Yield faults of the readable content that a hub would refuse whatever its state."""
    if isinstance(message, UnknownMessage):
        yield from check.unknown_faults(message, text_of(envelope, "type"))
        return
    yield from check.message_faults(message)
    sender = text_of(envelope, "fromAgent")
    if sender:
        yield from check.impostors(message, sender)
    if isinstance(message, HandoffRequested) and message.payload.parent_task_id == message.task_id:
        yield check.envelope_fault("a task cannot be a part of itself", "payload.parentTaskId")


def _linted(message: Any, faults: Iterable[Fault], oddities: Iterable[Fault]) -> Linted:
    faults = list(faults)
    issues = [{"path": issue.path, "reason": issue.reason} for issue in (*faults, *oddities)]
    return Linted(not faults, text_of(message, "type"), message, tuple(issues))


def _wrong_kind(envelope: Any, kind: str) -> Iterator[Fault]:
    if kind and text_of(envelope, "type") != kind:
        yield check.envelope_fault(f"this is no {kind}", "type")


def _strangers(value: Any, read: Struct, at: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        return
    known = {field.encode_name: getattr(read, field.name) for field in fields(read)}
    if not at:
        known["type"] = ""  # the tag of a shape is none of its fields
    for name, inner in cast(Mapping[str, Any], value).items():
        if name not in known:
            yield from _stranger(f"{at}{name}", inner, read)
        elif isinstance(known[name], Struct):
            yield from _strangers(inner, known[name], f"{at}{name}.")


def _stranger(path: str, value: Any, read: Struct) -> Iterator[Fault]:
    """Describe an unknown field; the cost of a report is known, because budgets use it."""
    if not (isinstance(read, Completion) and path == _COST):
        yield check.envelope_fault("AOF/1 knows no such field", path)
    elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        yield check.envelope_fault("a cost is a number from 0 on; this one is ignored", path)


def _odd_criteria(message: Message | UnknownMessage) -> Iterator[Fault]:
    if not isinstance(message, HandoffRequested):
        return
    if strings(message.payload.acceptance_criteria) is None:
        yield check.envelope_fault(NOT_STRINGS, "payload.acceptanceCriteria")
