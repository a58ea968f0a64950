"""The nine examples of the specification, as messages and as what follows from them."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.deadlines import Backoff
from dragoman.services.recovery import Recovery
from tests.protocols.aof.scene import CHILD, PARENT, Scene, example, report
from tests.requirements import proves

pytestmark = proves("AOF-EXAMPLES")


def staged(number: int) -> tuple[Scene, dict[str, Any]]:
    """A scene in which the task of an example is in its sender's hands, and the example."""
    scene, message = Scene(), example(number)
    task = message["taskId"]
    if task not in (PARENT, CHILD):
        scene.held(task, Actor("agent", message["fromAgent"]), session="s-1")
    scene.files.add((task, "outputs/summary.md"))
    return scene, message


def payloads(scene: Scene, after: int, kind: str) -> list[dict[str, Any]]:
    """The payloads of the lines of one type after a position."""
    return [line["payload"] for line in scene.lines(after) if line["type"] == kind]


@pytest.mark.parametrize(("number", "status"), [(1, "review"), (2, "blocked")])
@proves("AOF-COMPLETION", "AOF-SESSION-END")
def test_1_and_2_a_completion_is_logged_and_applied_with_the_session(
    number: int, status: str
) -> None:
    scene, message = staged(number)
    before = scene.size()
    scene.taken(message)

    assert scene.types(before) == ["protocol.message.received", "task.completed"]
    (completed,) = payloads(scene, before, "task.completed")
    for field, value in message["payload"].items():
        assert completed[field] == value

    scene.end()
    assert scene.task(message["taskId"]).status == status
    (moved,) = payloads(scene, before, "task.transitioned")
    assert (moved["from"], moved["to"]) == ("in-progress", status)


@proves("AOF-STATUS")
def test_3_progress_is_a_line_of_the_work_log() -> None:
    scene, message = staged(3)
    before = scene.size()
    scene.taken(message)

    assert payloads(scene, before, "task.updated") == [
        {
            "progress": "Executed 50/100 test cases",
            "notes": "No issues found so far",
            "sentAt": "2026-02-09T21:20:00.000Z",
        }
    ]
    assert payloads(scene, before, "task.transitioned") == []


@proves("AOF-STATUS")
def test_4_an_update_with_a_status_moves_the_task() -> None:
    scene, message = staged(4)
    before = scene.size()
    scene.taken(message)

    assert payloads(scene, before, "task.transitioned") == [
        {"from": "in-progress", "to": "blocked", "reason": "Test environment unreachable"}
    ]


@proves("AOF-HANDOFF")
def test_5_a_handoff_is_requested() -> None:
    scene, message = staged(5)
    before = scene.size()
    scene.taken(message)

    (asked,) = payloads(scene, before, "delegation.requested")
    for field, value in message["payload"].items():
        if field != "taskId":
            assert asked[field] == value
    assert scene.task(CHILD).depth == 1


@proves("AOF-HANDOFF")
def test_6_a_handoff_is_accepted() -> None:
    scene, message = staged(5)
    scene.taken(message)
    before = scene.size()
    scene.taken(example(6))

    assert scene.types(before) == ["protocol.message.received", "delegation.accepted"]
    assert scene.task(CHILD).status == "ready"


@proves("AOF-HANDOFF")
def test_7_a_handoff_is_rejected() -> None:
    scene, message = Scene(), example(7)
    child = message["taskId"]
    scene.ready(child)
    asked = example(5)
    scene.taken(asked | {"taskId": child, "payload": asked["payload"] | {"taskId": child}})
    before = scene.size()
    scene.taken(message)

    reason = "Insufficient context: no test plan provided"
    assert payloads(scene, before, "task.transitioned") == [
        {"from": "ready", "to": "blocked", "reason": reason}
    ]
    (said_no,) = payloads(scene, before, "delegation.rejected")
    assert said_no["reason"] == reason


def recovered(scene: Scene) -> list[dict[str, Any]]:
    """The transitions after the holder has been silent for longer than its lease."""
    before = scene.size()
    scene.lab.clock.advance(300_001)
    Recovery(scene.lab.hub, Backoff()).run_once(scene.lab.clock.now())
    return payloads(scene, before, "task.transitioned")


def test_8_a_silent_holder_that_has_reported_is_honoured(scene: Scene) -> None:
    scene.taken(report("partial"))
    (moved,) = recovered(scene)

    assert moved == {"from": "in-progress", "to": "review", "reason": "stale_heartbeat_partial"}


def test_9_a_silent_holder_that_has_not_reported_loses_the_task(scene: Scene) -> None:
    (moved,) = recovered(scene)

    assert (moved["from"], moved["to"]) == ("in-progress", "ready")
    assert moved["reason"] == "stale_heartbeat_reclaim"
