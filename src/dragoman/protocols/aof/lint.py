"""Is this AOF/1? For developers of agents and their CI: every finding, with its place."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import fields

from dragoman.engine.operation import Fault, Linted
from dragoman.protocols.aof import check
from dragoman.protocols.aof.detect import Found, is_ours, unwrapped
from dragoman.protocols.aof.read import shaped, text_of
from dragoman.protocols.aof.translate import NOT_STRINGS, strings
from dragoman.protocols.aof.wire import MESSAGES, HandoffRequested, Message, type_of
from dragoman.text.strict_json import MOST_BYTES

_NOT_OURS = check.envelope_fault('this is not AOF/1, whose protocol is "aof"', "protocol")


def lint(value: Any, kind: str, strict: bool) -> Linted:
    """Everything that is to be said about one JSON value, bare or wrapped like any message.

    Strict also minds what a hub lets pass: fields that AOF/1 does not know, and acceptance criteria
    that are taken as []. Otherwise these are listed and the message is fine.
    """
    found = Found(Raw(), value) if is_ours(value) else unwrapped(value, MOST_BYTES)
    if found is None:
        return _linted(value, [_NOT_OURS], ())
    if found.fault is not None:
        return _linted(value, [check.envelope_fault(found.fault.reason, found.fault.path)], ())
    read = shaped(found.value, found.said)
    if isinstance(read, Fault):
        return _linted(found.value, _shape_faults(found.value) or [read], ())
    message = read.message
    faults = [*_wrong_kind(message, kind), *check.message_faults(message)]
    oddities = [*_unknown_fields(found.value, message), *_odd_criteria(message)]
    return _linted(found.value, faults + oddities * strict, oddities * (not strict))


def _shape_faults(value: Any) -> list[Fault]:
    """All that keeps a message from having the shape of its type."""
    kind = text_of(value, "type")
    return list(check.shape_faults(value, MESSAGES[kind])) if kind in MESSAGES else []


def _linted(message: Any, faults: Iterable[Fault], oddities: Iterable[Fault]) -> Linted:
    faults = list(faults)
    issues = [{"path": issue.path, "reason": issue.reason} for issue in (*faults, *oddities)]
    return Linted(not faults, text_of(message, "type"), message, tuple(issues))


def _wrong_kind(message: Message, kind: str) -> Iterator[Fault]:
    if kind and type_of(message) != kind:
        yield check.envelope_fault(f"this is no {kind}", "type")


def _unknown_fields(envelope: Mapping[str, Any], message: Message) -> Iterator[Fault]:
    bare = {name: value for name, value in envelope.items() if name != "type"}
    yield from _strangers(bare, message, "")
    yield from _strangers(envelope["payload"], message.payload, "payload.")


def _strangers(value: Mapping[str, Any], read: Struct, at: str) -> Iterator[Fault]:
    known = {field.encode_name for field in fields(read)}
    for name in value:
        if name not in known:
            yield check.envelope_fault("AOF/1 knows no such field", f"{at}{name}")


def _odd_criteria(message: Message) -> Iterator[Fault]:
    if not isinstance(message, HandoffRequested):
        return
    if strings(message.payload.acceptance_criteria) is None:
        yield check.envelope_fault(NOT_STRINGS, "payload.acceptanceCriteria")
