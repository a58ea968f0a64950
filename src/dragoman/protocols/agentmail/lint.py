"""Lint a letter without sending it, for developers of agents and their CI."""

import json
from typing import Any

import msgspec

from dragoman.engine.operation import LintResult
from dragoman.protocols.agentmail.errors import MailError
from dragoman.protocols.agentmail.parse import Parser, rejection_reason
from dragoman.protocols.agentmail.wire import Problem

_lenient, _strict = Parser(), Parser(strict=True)


def lint(value: Any, kind: str, strict: bool) -> LintResult:
    """Lint one row; only strict linting fails it."""
    if isinstance(value, str):  # a string would be parsed as JSON; a quoted row is no row
        value = json.dumps(value)
    message = _lenient.parse(value)
    problems = _strict_problems(value) if strict else message.problems
    issues = [_to_issue(problem) for problem in problems]
    if rejection := rejection_reason(value):
        issues.append({"path": "bcc", "reason": rejection})
    if kind and message.type != kind:
        issues.append({"path": "subject", "reason": f"this is {message.type}, not {kind}"})
    is_ok = not strict or not issues
    return LintResult(is_ok, message.type, msgspec.to_builtins(message), tuple(issues))


def _strict_problems(value: Any) -> tuple[Problem, ...]:
    try:
        _strict.parse(value)
    except MailError as error:
        return error.problems
    return ()


def _to_issue(problem: Problem) -> dict[str, str]:
    path = f"{problem.field} (line {problem.line})" if problem.line else problem.field
    return {"path": path, "reason": f"{problem.name}: {problem.text}"}
