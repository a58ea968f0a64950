"""Is this a letter? For developers of agents and their CI: every finding, with its place."""

import json
from typing import Any

import msgspec

from dragoman.engine.operation import Linted
from dragoman.protocols.agentmail.parse import Parser
from dragoman.protocols.agentmail.problems import MailError
from dragoman.protocols.agentmail.row import why_not_taken
from dragoman.protocols.agentmail.shapes import Problem

_lenient, _strict = Parser(), Parser(strict=True)


def lint(value: Any, kind: str, strict: bool) -> Linted:
    """Lint one row; only strict linting fails it."""
    if isinstance(value, str):  # a string would be parsed as JSON; a quoted row is no row
        value = json.dumps(value)
    message = _lenient.parse(value)
    problems = _found(value) if strict else message.problems
    issues = [_issue(problem) for problem in problems]
    if why_not := why_not_taken(value):
        issues.append({"path": "bcc", "reason": why_not})
    if kind and message.type != kind:
        issues.append({"path": "subject", "reason": f"this is {message.type}, not {kind}"})
    is_ok = not strict or not issues
    return Linted(is_ok, message.type, msgspec.to_builtins(message), tuple(issues))


def _found(value: Any) -> tuple[Problem, ...]:
    try:
        _strict.parse(value)
    except MailError as error:
        return error.problems
    return ()


def _issue(problem: Problem) -> dict[str, str]:
    place = f"{problem.field} (line {problem.line})" if problem.line else problem.field
    return {"path": place, "reason": f"{problem.name}: {problem.text}"}
