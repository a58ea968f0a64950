"""The form of what is delegated: how much it may say, and in which fields."""

from collections.abc import Iterator

import msgspec

from dragoman.core.commands import DelegateIntent
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id
from dragoman.core.limits import (
    MAX_CANDIDATES,
    MAX_POLICY_RULES,
    MAX_REASON,
    MAX_STORED_OUTPUT_BYTES,
    MAX_TEXT,
    MAX_TRIES,
    check_count,
    check_json,
    check_range,
    check_text,
    iter_skill_faults,
)
from dragoman.core.moments import TIMESTAMP_RANGE
from dragoman.core.offers import Policy


def check_fields(command: DelegateIntent) -> Iterator[Refusal | None]:
    """Check each field of a delegation, in order."""
    yield check_id(command.id, "intent id", "id") if command.id else None
    yield check_text("goal", command.goal, MAX_REASON, minimum=1)
    yield check_json("params", command.params) or _check_size("params", command.params)
    extra = "meta and other fields"
    yield check_json(extra, command.passed_on) or _check_size(extra, command.passed_on)
    yield from iter_skill_faults("constraints", command.constraints)
    yield from iter_skill_faults("skills", command.skills)
    yield check_range("due_by", command.due_by, 0, TIMESTAMP_RANGE[1])
    yield check_range("kept_bytes", command.kept_bytes, 0, MAX_STORED_OUTPUT_BYTES)
    yield check_id(command.plan, "plan", "plan") if command.plan else None
    yield check_id(command.follows, "intent id", "follows") if command.follows else None
    yield check_id(command.request_id, "request id", "request_id") if command.request_id else None
    yield check_range("tries", command.tries, 1, MAX_TRIES)
    yield check_count("candidates", command.candidates, MAX_CANDIDATES)
    yield from _check_policy_fields(command.policy)


def _check_policy_fields(policy: Policy) -> Iterator[Refusal | None]:
    for field in ("data_locality", "required_skills", "forbidden_goals"):
        yield check_count(f"policy.{field}", getattr(policy, field), MAX_POLICY_RULES)


def _check_size(field: str, value: dict[str, object]) -> Refusal | None:
    size = len(msgspec.json.encode(value))
    if size <= MAX_TEXT:
        return None
    detail = f"{field}: {size} bytes are too many; {MAX_TEXT} are allowed"
    return Refusal("invalid_field", detail, path=field)
