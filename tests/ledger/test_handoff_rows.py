"""Rows of handoffs: the specification's columns, filled from the folded state."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.handoff.state import (
    DEFAULT_SLA_MS,
    CompleteHandoff,
    EscalateHandoff,
    HandoffStatus,
    RejectHandoff,
)
from dragoman.ledger.stream_state import HandoffRow, handoff_row, order_handoff_rows
from tests.core.handoffs import activated, again, at, handoff, offered
from tests.core.world import BOB, HUB, NOW, World, held
from tests.requirements import proves

pytestmark = proves("ACP-TABLE")


def row_of(world: World, id: str = "H") -> HandoffRow:
    """Make the row of a handoff."""
    found = handoff_row(handoff(world, id))
    assert found is not None
    return found


def resolution_notes(world: World) -> Any:
    """Decode the resolution notes."""
    return json.loads(row_of(world).resolution_notes or "null")


def test_other_states_have_no_row() -> None:
    assert handoff_row(None) is None
    assert handoff_row(held().tasks["T"]) is None


@pytest.mark.parametrize("state", ["proposed", "validating", "accepted", "activated"])
def test_active_handoff_is_not_resolved(state: HandoffStatus) -> None:
    found = row_of(at(state))
    assert (found.status, found.is_active, found.resolved_at) == (state, True, None)
    assert found.resolution_notes is None


def test_columns_hold_the_offered_package() -> None:
    world = offered(title="a\0title", reason="because", thread="th-1")
    found, state = row_of(world), handoff(world)
    assert (found.id, found.thread_id, found.task_id) == ("H", "th-1", "T")
    assert (found.from_agent, found.to_agent) == ("alice", "bob")
    assert (found.title, found.reason) == ("a\N{REPLACEMENT CHARACTER}title", "because")
    assert json.loads(found.package_json) == state.package
    assert json.loads(found.provenance_json) == state.package["provenance"]
    assert found.initiated_at == "2026-02-09T14:30:00.000Z"
    assert json.loads(found.verification_json) == {
        "schema_version": "1.0.0",
        "package_hash": state.package_hash,
        "passed": [],
        "failed": [],
    }


def test_resolution_stands_in_the_notes() -> None:
    world = offered()
    again(world, BOB, RejectHandoff("H", "timeout_risk", "no", "later"), "cause-2", NOW + 5)
    found = row_of(world)
    assert (found.status, found.is_active) == ("rejected", False)
    assert found.resolved_at == "2026-02-09T14:30:00.005Z"
    assert resolution_notes(world) == {
        "reason": "timeout_risk",
        "detail": "no",
        "by": "bob",
        "suggested_fix": "later",
    }
    done = activated()
    again(done, BOB, CompleteHandoff("H", "it works"), "cause-2")
    assert resolution_notes(done) == {"completed": "it works"}
    without_text = activated()
    again(without_text, BOB, CompleteHandoff("H"), "cause-2")
    assert resolution_notes(without_text) is None


def test_escalation_note_has_the_fields_of_the_seed() -> None:
    world = activated()
    late = NOW + DEFAULT_SLA_MS["activated"] + 2 * 3_600_000
    again(world, HUB, EscalateHandoff("H"), "cause-2", late)
    assert resolution_notes(world) == {
        "escalation": {
            "trigger": "timeout",
            "stage": "activated→completed",
            "sla_configured": "24h",
            "sla_elapsed": "26h",
            "escalated_to": "coordinator",
            "escalated_at": "2026-02-10T16:30:00.000Z",
        }
    }
    bare = handoff_row(replace(handoff(offered()), rejection=handoff(at("rejected")).rejection))
    assert bare is not None
    assert "suggested_fix" not in str(bare.resolution_notes)


def test_resolved_rows_are_written_first() -> None:
    first = handoff(offered())
    states = [first, None, replace(handoff(at("closed")), id="Z"), replace(first, id="A")]
    assert [row.id for row in order_handoff_rows(states)] == ["Z", "A", "H"]
