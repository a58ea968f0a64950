"""The form of what is delegated: how much it may say, and in which fields."""

from collections.abc import Iterator

import msgspec

from dragoman.core.commands import DelegateIntent
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id
from dragoman.core.limits import (
    CANDIDATES,
    KEPT,
    REASON,
    RULES,
    TEXT,
    TRIES,
    check_count,
    check_json,
    check_range,
    check_text,
    faults_of_words,
)
from dragoman.core.moments import SPAN
from dragoman.core.offers import Policy


def faults(command: DelegateIntent) -> Iterator[Refusal | None]:
    """Check each field of a delegation, in order."""
    yield check_id(command.id, "intent id", "id") if command.id else None
    yield check_text("goal", command.goal, REASON, least=1)
    yield check_json("params", command.params) or _check_size("params", command.params)
    beside = "meta and other fields"
    yield check_json(beside, command.passed_on) or _check_size(beside, command.passed_on)
    yield from faults_of_words("constraints", command.constraints)
    yield from faults_of_words("skills", command.skills)
    yield check_range("due_by", command.due_by, 0, SPAN[1])
    yield check_range("kept_bytes", command.kept_bytes, 0, KEPT)
    yield check_id(command.plan, "plan", "plan") if command.plan else None
    yield check_id(command.follows, "intent id", "follows") if command.follows else None
    yield check_id(command.request_id, "request id", "request_id") if command.request_id else None
    yield check_range("tries", command.tries, 1, TRIES)
    yield check_count("candidates", command.candidates, CANDIDATES)
    yield from _faults_of_policy(command.policy)


def _faults_of_policy(policy: Policy) -> Iterator[Refusal | None]:
    for field in ("data_locality", "required_skills", "forbidden_goals"):
        yield check_count(f"policy.{field}", getattr(policy, field), RULES)


def _check_size(what: str, said: dict[str, object]) -> Refusal | None:
    size = len(msgspec.json.encode(said))
    if size <= TEXT:
        return None
    why = f"{what}: {size} bytes are too many; {TEXT} are allowed"
    return Refusal("invalid_field", why, path=what)
