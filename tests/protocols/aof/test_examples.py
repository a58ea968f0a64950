"""The nine examples of the specification, as messages and with their effects."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.backoff import Backoff
from dragoman.services.timers import LeaseExpiry
from tests.protocols.aof.hub import CHILD, PARENT, AofHub, example, report
from tests.requirements import proves

pytestmark = proves("AOF-EXAMPLES")


def prepare_example(number: int) -> tuple[AofHub, dict[str, Any]]:
    """Build a hub in which the example's sender holds its task, and load the example."""
    hub, message = AofHub(), example(number)
    task = message["taskId"]
    if task not in (PARENT, CHILD):
        hub.create_held(task, Actor("agent", message["fromAgent"]), session="s-1")
    hub.files.add((task, "outputs/summary.md"))
    return hub, message


def payloads(hub: AofHub, after: int, kind: str) -> list[dict[str, Any]]:
    """Return the payloads of the lines of one type after a position."""
    return [line["payload"] for line in hub.lines(after) if line["type"] == kind]


@pytest.mark.parametrize(("number", "status"), [(1, "review"), (2, "blocked")])
@proves("AOF-COMPLETION", "AOF-SESSION-END")
def test_1_and_2_completion_is_logged_and_applied_with_the_session(
    number: int, status: str
) -> None:
    hub, message = prepare_example(number)
    before = hub.head()
    hub.accept(message)

    assert hub.types(before) == ["protocol.message.received", "task.completed"]
    (completed,) = payloads(hub, before, "task.completed")
    for field, value in message["payload"].items():
        assert completed[field] == value

    hub.end_session()
    assert hub.task(message["taskId"]).status == status
    (moved,) = payloads(hub, before, "task.transitioned")
    assert (moved["from"], moved["to"]) == ("in-progress", status)


@proves("AOF-STATUS")
def test_3_progress_is_written_to_the_work_log() -> None:
    hub, message = prepare_example(3)
    before = hub.head()
    hub.accept(message)

    assert payloads(hub, before, "task.updated") == [
        {
            "progress": "Executed 50/100 test cases",
            "notes": "No issues found so far",
            "sentAt": "2026-02-09T21:20:00.000Z",
        }
    ]
    assert payloads(hub, before, "task.transitioned") == []


@proves("AOF-STATUS")
def test_4_update_with_a_status_moves_the_task() -> None:
    hub, message = prepare_example(4)
    before = hub.head()
    hub.accept(message)

    assert payloads(hub, before, "task.transitioned") == [
        {"from": "in-progress", "to": "blocked", "reason": "Test environment unreachable"}
    ]


@proves("AOF-HANDOFF")
def test_5_handoff_is_requested() -> None:
    hub, message = prepare_example(5)
    before = hub.head()
    hub.accept(message)

    (requested,) = payloads(hub, before, "delegation.requested")
    for field, value in message["payload"].items():
        if field != "taskId":
            assert requested[field] == value
    assert hub.task(CHILD).depth == 1


@proves("AOF-HANDOFF")
def test_6_handoff_is_accepted() -> None:
    hub, message = prepare_example(5)
    hub.accept(message)
    before = hub.head()
    hub.accept(example(6))

    assert hub.types(before) == ["protocol.message.received", "delegation.accepted"]
    assert hub.task(CHILD).status == "ready"


@proves("AOF-HANDOFF")
def test_7_handoff_is_rejected() -> None:
    hub, message = AofHub(), example(7)
    child = message["taskId"]
    hub.create_ready(child)
    request = example(5)
    hub.accept(request | {"taskId": child, "payload": request["payload"] | {"taskId": child}})
    before = hub.head()
    hub.accept(message)

    reason = "Insufficient context: no test plan provided"
    assert payloads(hub, before, "task.transitioned") == [
        {"from": "ready", "to": "blocked", "reason": reason}
    ]
    (rejection,) = payloads(hub, before, "delegation.rejected")
    assert rejection["reason"] == reason


def recover(hub: AofHub) -> list[dict[str, Any]]:
    """Expire the holder's lease, run recovery and return the transitions."""
    before = hub.head()
    hub.lab.clock.advance(300_001)
    LeaseExpiry(hub.lab.hub, Backoff()).run_once(hub.lab.clock.now())
    return payloads(hub, before, "task.transitioned")


def test_8_expired_holder_with_a_report_gets_it_applied(hub: AofHub) -> None:
    hub.accept(report("partial"))
    (moved,) = recover(hub)

    assert moved == {"from": "in-progress", "to": "review", "reason": "stale_heartbeat_partial"}


def test_9_expired_holder_without_a_report_loses_the_task(hub: AofHub) -> None:
    (moved,) = recover(hub)

    assert (moved["from"], moved["to"]) == ("in-progress", "ready")
    assert moved["reason"] == "stale_heartbeat_reclaim"
