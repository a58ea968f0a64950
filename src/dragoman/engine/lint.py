"""Checks of a message that is not sent: its lint, and the reason why no dialect recognised it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from dragoman.engine.operation import (
    Dialect,
    Fault,
    Linter,
    LintResult,
    ParsedMessage,
    QueryOperation,
    RawMessage,
    fault_from_json_error,
)
from dragoman.text.strict_cbor import is_cbor_map, parse_cbor
from dragoman.text.strict_json import StrictJsonError, parse_json, parse_loosely

# --- lint -------------------------------------------------------------------------------------


def linter_of(dialect: Dialect) -> Linter:
    """The dialect's linter, or one that parses a message and shows its fault."""
    return dialect.lint or Linter(
        partial(_lint_by_parsing, dialect),
        tuple(one.name for one in dialect.operations if not isinstance(one, QueryOperation)),
        {one.name: one for one in dialect.operations},
    )


def _lint_by_parsing(dialect: Dialect, value: Any, kind: str, _strict: bool) -> LintResult:
    raw = RawMessage(cast(dict[str, Any], value)) if isinstance(value, dict) else None
    parsed = dialect.parse(raw) if raw is not None else None
    if parsed is None:
        issue = {"path": "", "reason": f"it is no message of {dialect.name}: {dialect.hint}"}
        return LintResult(False, "", value, (issue,))
    return _lint_parsed(parsed, value, kind)


def _lint_parsed(parsed: ParsedMessage, message: Any, kind: str) -> LintResult:
    issues = list[dict[str, str]]()
    if kind not in ("", parsed.kind):
        issues.append({"path": "", "reason": f"this is no {kind}"})
    if parsed.fault is not None:
        issues.append({"path": parsed.fault.path, "reason": parsed.fault.reason})
    return LintResult(not issues, parsed.kind, message, tuple(issues))


def lint_text(dialect: Dialect, text: bytes, kind: str, *, strict: bool) -> LintResult:
    """Lint one message in bytes: JSON, whose syntax error is one issue, or text of a dialect that
    has no linter of its own and recognises it."""
    linter, limits = linter_of(dialect), dialect.limits
    body = text.removeprefix(linter.prefix)
    raw = RawMessage(body, limits.max_bytes, allow_big_integers=limits.allow_big_integers)
    value = raw.value
    if not isinstance(value, StrictJsonError):
        linted = linter.check(value, kind, strict)
        operation = linter.operation_of_type.get(linted.kind or linted.type)
        max_bytes = limits.max_bytes if operation is None else operation.limits.max_bytes
        return linted if len(raw.text) <= max_bytes else _too_large(linted, max_bytes)
    parsed = dialect.parse(raw) if dialect.lint is None else None
    if parsed is not None:
        return _lint_parsed(parsed, body.decode(errors="replace"), kind)
    issue = {"path": value.path, "reason": value.reason}
    if strict or not linter.accepts_any_text:
        return LintResult(False, "", None, (issue,))
    linted = linter.check(parse_loosely(body, default={}), kind, False)
    return replace(linted, issues=(issue, *linted.issues))


def _too_large(linted: LintResult, max_bytes: int) -> LintResult:
    """The result with the issue that a surface would refuse a message of this type and length."""
    issue = {"path": "", "reason": f"it has more than {max_bytes} bytes, and no more are taken"}
    return replace(linted, ok=False, issues=(*linted.issues, issue))


# --- messages that no dialect recognised ------------------------------------------------------


def explain_unrecognized(
    message: bytes | str | Mapping[str, Any], dialects: Sequence[Dialect]
) -> Fault:
    """Explain to the sender why no dialect took the message; `dialects`: those it could have been
    of."""
    text = message.encode(errors="surrogatepass") if isinstance(message, str) else message
    broken = _syntax_fault(text) if isinstance(text, bytes) else None
    if broken is not None:
        return broken
    shapes = "; ".join(f"{one.name}: {one.hint}" for one in dialects)
    return Fault("not_recognized", f"{_describe(text)} ({shapes})")


def _describe(message: bytes | Mapping[str, Any]) -> str:
    first = message.lstrip()[:1] if isinstance(message, bytes) else message
    if first == b"[":
        return "it is a list: send each message by itself, or several as JSON Lines, one per line"
    return "no dialect recognises it" if first else "there is nothing in it"


def _syntax_fault(text: bytes) -> Fault | None:
    """The syntax error of a text that begins as JSON or CBOR; other text may be of any dialect."""
    is_cbor = is_cbor_map(text)
    if not is_cbor and text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        (parse_cbor if is_cbor else parse_json)(text)
    except StrictJsonError as error:
        return fault_from_json_error(error)
    return None
