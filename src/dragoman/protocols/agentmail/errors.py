"""Problems that a parser finds in a letter."""

from collections.abc import Mapping
from typing import Final

from dragoman.protocols.agentmail.wire import MESSAGE_TYPES, Problem

_PROBLEM_TEXTS: Final[Mapping[str, str]] = {
    "not_a_row": "{right}: a letter is a JSON object with subject and body_md",
    "bad_envelope": "{field} has a wrong type: write {right}",
    "unknown_type": f"the subject {{shown}} names no type: use one of {', '.join(MESSAGE_TYPES)}",
    "two_types": "the subject names {shown} as well as {right}: name one type",
    "missing_field": "{field} is missing: write {right}",
    "misplaced_field": "{field} is in the wrong section and not read: write {right}",
    "missing_bead_id": "no bead is named: write a line Bead: ID, or [ID] before the type",
    "bead_mismatch": "the body is about {right}, the subject about {shown}: name one bead",
    "bad_value": "{field} is {shown}: use one of {right}",
    "bad_percentage": "{field} is {shown}: use a whole number from 0 to 100, such as 45%",
    "bad_number": "{field} is {shown}: use a whole number, such as 3",
    "bad_verdict": "{field} is {shown}: use {right}",
    "bad_timestamp": "{field} is {shown}: use a date with a time, such as 2026-01-31T10:00:00Z",
}

PROBLEM_NAMES: Final = frozenset(_PROBLEM_TEXTS)
"""Stable names of problems, for programs."""

_MAX_QUOTED: Final = 60


def make_problem(
    name: str, field: str = "", line: int = 0, *, shown: str = "", right: str = ""
) -> Problem:
    """Build a problem with its sentence; text of the letter is quoted short and harmless."""
    text = _PROBLEM_TEXTS[name].format(field=field, shown=quote(shown), right=right)
    return Problem(name, field, line, text)


def quote(text: str) -> str:
    """Quote untrusted text within a sentence."""
    return ascii(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "…")


class MailError(ValueError):
    """A letter refused by strict parsing, with all its problems."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(_format_problem(one) for one in problems))
        self.problems = problems


def _format_problem(problem: Problem) -> str:
    return (
        f"{problem.name} (line {problem.line} of the body): {problem.text}"
        if problem.line
        else f"{problem.name}: {problem.text}"
    )
