"""Is this a message of CCOS 019? For developers of agents and their CI: findings with places."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import fields

from dragoman.core.ids import check_agent, check_id
from dragoman.core.moments import parse_rfc3339
from dragoman.engine.faults import Fault
from dragoman.engine.operation import Linted
from dragoman.protocols.ccos.reading import shaped
from dragoman.protocols.ccos.wire import KINDS, Message, as_value, kind_of
from dragoman.text.shape_words import NO_OBJECT


def lint(value: Any, kind: str, strict: bool) -> Linted:
    """Lint one message.

    Strict also reports what the hub accepts: names that it would refuse, and unknown fields.
    """
    if not isinstance(value, dict):
        return _wrong(kind, Fault("", NO_OBJECT))
    said = cast(Mapping[str, Any], value)
    found = kind_of(said)
    wanted = kind or found
    if not wanted:
        reason = f"it says nothing by which it is one of {', '.join(KINDS)}"
        return _wrong("", Fault("", reason))
    if found and found != wanted:
        return _wrong(found, Fault("", f"this is a {found}, not a {wanted}"))
    read = shaped(said, KINDS[wanted])
    if isinstance(read, Fault):
        return _wrong(wanted, read)
    issues = tuple(_issue(fault) for fault in _more(said, read, strict=strict))
    return Linted(not issues, wanted, as_value(read), issues)


def _more(said: Mapping[str, Any], read: Message, *, strict: bool) -> Iterator[Fault]:
    deadline = getattr(read, "deadline", UNSET)
    if isinstance(deadline, str):
        try:
            parse_rfc3339(deadline)
        except ValueError as error:
            yield Fault("", str(error), "deadline")
    if not strict:
        return
    for path, refusal in (
        ("intent_id", check_id(read.intent_id, "intent id")),
        ("agent_id", check_agent(read.agent_id)),
    ):
        if refusal is not None:
            yield Fault("", refusal.detail, path)
    known = {field.encode_name for field in fields(read)}
    for name in said:
        if name not in known:
            yield Fault("", "CCOS 019 has no such field; put it into meta", name)


def _wrong(kind: str, fault: Fault) -> Linted:
    return Linted(False, kind, None, (_issue(fault),))


def _issue(fault: Fault) -> dict[str, str]:
    return {"path": fault.path, "reason": fault.reason}
