"""Is this SAOP? For developers of agents and their CI: every finding, with its place."""

import json
from typing import Any, Final, cast

from dragoman.engine.operation import Linted
from dragoman.protocols.saop.schema import Schema
from dragoman.protocols.saop.types import TYPES
from dragoman.protocols.saop.versions import Turns
from dragoman.text.strict_json import field_of

KINDS: Final = ("turn", "event", "payload")

_SCHEMAS: Final[dict[str, Schema[Any] | Turns]] = {
    "turn": Turns(),
    "event": TYPES.event,
    "payload": TYPES.payload,
}


def lint(value: Any, kind: str, strict: bool) -> Linted:
    """Everything that is wrong with one JSON value; without a kind, with what it looks like most.

    SAOP has no looser reading: strict or not, the shapes are what they are.
    """
    del strict
    kind = kind or kind_of(value) or "turn"
    # A text would be read as JSON: a message in quotes is none.
    parsed = _SCHEMAS[kind].safe_parse(json.dumps(value) if isinstance(value, str) else value)
    issues = tuple({"path": issue.path, "reason": issue.reason} for issue in parsed.issues)
    return Linted(parsed.ok, _type(value, kind), value, issues, kind)


def kind_of(value: Any) -> str:
    """What a value looks like; empty: like nothing of ours."""
    if not isinstance(value, dict):
        return ""
    known = cast(dict[str, Any], value)
    if "turn_index" in known and "content" in known and "metadata" in known:
        return "turn"
    if "event_id" in known and isinstance(known.get("payload"), dict):
        return "event"
    return "payload" if known.get("type") in TYPES.by_name else ""


def _type(value: Any, kind: str) -> str:
    if kind == "turn" or not isinstance(value, dict):
        return kind
    known = cast(dict[str, Any], value)
    payload = known.get("payload") if kind == "event" else known
    name = field_of(payload, "type")
    return name if isinstance(name, str) else kind
