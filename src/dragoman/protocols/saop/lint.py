"""Lint a turn, an event or a payload without sending it, for developers of agents and their CI."""

import json
from typing import Any, Final, cast

from dragoman.engine.operation import LintResult
from dragoman.protocols.saop.parse import SCHEMAS, TYPES
from dragoman.text.strict_json import get_field

KINDS: Final = tuple(SCHEMAS)


def lint(value: Any, kind: str, _: bool) -> LintResult:
    """Lint one JSON value; without a kind, as the kind that it resembles most.

    SAOP has no lenient mode: strict or not, the schemas are the same.
    """
    kind = kind or detect_kind(value) or "turn"
    # A plain string would be parsed as JSON text; a quoted message is not a message.
    parsed = SCHEMAS[kind].safe_parse(json.dumps(value) if isinstance(value, str) else value)
    issues = tuple({"path": issue.path, "reason": issue.reason} for issue in parsed.issues)
    return LintResult(parsed.ok, _message_type(value, kind), value, issues, kind)


def detect_kind(value: Any) -> str:
    """Detect the kind that a value resembles; empty: none of SAOP."""
    if not isinstance(value, dict):
        return ""
    known = cast(dict[str, Any], value)
    if "turn_index" in known and "content" in known and "metadata" in known:
        return "turn"
    if "event_id" in known and isinstance(known.get("payload"), dict):
        return "event"
    return "payload" if known.get("type") in TYPES.by_name else ""


def _message_type(value: Any, kind: str) -> str:
    if kind == "turn" or not isinstance(value, dict):
        return kind
    known = cast(dict[str, Any], value)
    payload = known.get("payload") if kind == "event" else known
    name = get_field(payload, "type")
    return name if isinstance(name, str) else kind
