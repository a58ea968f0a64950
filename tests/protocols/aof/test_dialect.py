"""AOF/1 is complete: a reason for every refusal, a line or a silence for every event."""

import msgspec

from dragoman.core.errors import REFUSALS
from dragoman.core.events import EVENT_NAMES
from dragoman.protocols.aof import dialect
from tests.requirements import proves

pytestmark = proves("DIALECT-COMPLETE")

SEED_REASONS = {
    "invalid_json",
    "invalid_envelope",
    "task_not_found",
    "parent_not_found",
    "nested_delegation",
    "taskId_mismatch",
}


def test_every_refusal_has_a_reason() -> None:
    reasons = dialect().refusals

    assert set(reasons) == set(REFUSALS)
    assert set(reasons.values()) >= SEED_REASONS
    assert {reasons[code] for code in SEED_REASONS} == SEED_REASONS


def test_every_event_has_a_line_or_is_silent_on_purpose() -> None:
    assert set(dialect().render) == set(EVENT_NAMES)


def test_every_operation_has_a_name_of_its_own_and_a_shape_that_can_be_published() -> None:
    operations = dialect().operations

    assert [operation.name for operation in operations] == [
        "completion.report",
        "status.update",
        "handoff.request",
        "handoff.accepted",
        "handoff.rejected",
        "aof_task_complete",
        "aof_task_update",
        "session_end",
    ]
    for operation in operations:
        schema = msgspec.json.schema(operation.shape)
        assert "$defs" in schema, operation.name
