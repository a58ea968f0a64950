"""Lint of one message without sending it: syntax, shape, and size."""

from msgspec.structs import replace

from dragoman.engine.operation import Dialect, LintResult
from dragoman.engine.raw_message import RawMessage
from dragoman.text.strict_json import StrictJsonError, parse_loosely


def lint_text(dialect: Dialect, text: bytes, kind: str, *, strict: bool) -> LintResult:
    """Lint one JSON value in bytes; invalid JSON is one issue."""
    limits = dialect.limits
    body = text.removeprefix(dialect.prefix)
    raw = RawMessage(body, limits.max_bytes, allow_big_integers=limits.allow_big_integers)
    value = raw.value
    if not isinstance(value, StrictJsonError):
        return _check_size(dialect, dialect.lint(value, kind, strict), raw)
    issue = {"path": value.path, "reason": value.reason}
    if strict or not dialect.lints_any_text:
        return LintResult(False, "", None, (issue,))
    linted = dialect.lint(parse_loosely(body, default={}), kind, False)
    return replace(linted, issues=(issue, *linted.issues))


def _check_size(dialect: Dialect, linted: LintResult, raw: RawMessage) -> LintResult:
    """Add an issue if a surface would refuse a message of this type for its length."""
    operation = dialect.operation_of_type.get(linted.kind or linted.type)
    max_bytes = dialect.limits.max_bytes if operation is None else operation.limits.max_bytes
    if len(raw.text) <= max_bytes:
        return linted
    issue = {"path": "", "reason": f"it has more than {max_bytes} bytes, and no more are taken"}
    return replace(linted, ok=False, issues=(*linted.issues, issue))
