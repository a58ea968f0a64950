"""Names of AOF/1 as in the specification (all dialects: tests/conformance/protocol)."""

from dragoman.core.errors import REFUSALS
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


def test_dialect_has_the_refusal_reasons_of_the_seed() -> None:
    reasons = {code: dialect().errors.code(code) for code in REFUSALS}

    assert set(reasons.values()) >= SEED_REASONS
    assert {reasons[code] for code in SEED_REASONS} == SEED_REASONS


def test_operation_names_are_those_of_the_seed_and_the_box_of_deliveries() -> None:
    assert [operation.name for operation in dialect().operations] == [
        "completion.report",
        "status.update",
        "handoff.request",
        "handoff.accepted",
        "handoff.rejected",
        "aof_task_complete",
        "aof_task_update",
        "session_end",
        "aof_inbox",
    ]
