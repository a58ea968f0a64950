"""Status updates: transition or work log, the reason, the time, and who may (S-AOF-4, S-AOF-6)."""

from typing import Any

import pytest

from tests.protocols.aof.scene import BACKEND, CHILD, PARENT, UNKNOWN, Scene, update
from tests.requirements import proves

pytestmark = proves("AOF-STATUS")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"blockers": ["No key", "No box"], "notes": "n", "progress": "p"}, "No key; No box"),
        ({"blockers": [], "notes": "n", "progress": "p"}, "n"),
        ({"notes": "n", "progress": "p"}, "n"),
        ({"progress": "p"}, "p"),
        ({"notes": "", "progress": "p"}, "p"),
        ({}, ""),
    ],
)
def test_the_reason_is_the_first_that_was_given(
    scene: Scene, fields: dict[str, Any], reason: str
) -> None:
    before = scene.size()
    scene.taken(update(status="blocked", **fields))

    received, moved = scene.lines(before)
    assert received["type"] == "protocol.message.received"
    assert moved["type"] == "task.transitioned"
    assert moved["payload"] == {"from": "in-progress", "to": "blocked", "reason": reason}
    assert (moved["actor"], moved["taskId"]) == ("swe-backend", PARENT)


@pytest.mark.parametrize("status", [None, "in-progress", "backlog", "done"])
def test_without_a_way_there_it_is_a_line_of_the_work_log(scene: Scene, status: str | None) -> None:
    before = scene.size()
    asked = {} if status is None else {"status": status}
    scene.taken(update(progress="Half", notes="n", blockers=["b"], **asked))

    assert scene.task().status == "in-progress"
    assert scene.types(before) == ["protocol.message.received", "task.updated"]
    assert scene.lines(before)[1]["payload"] == {
        "progress": "Half",
        "notes": "n",
        "blockers": ["b"],
        "sentAt": "2026-02-09T21:00:00.000Z",
    }


@proves("AOF-REPEAT")
def test_the_same_status_without_words_is_heard_and_changes_nothing(scene: Scene) -> None:
    before = scene.task()
    size = scene.size()
    answer = scene.taken(update(status="in-progress"))

    assert answer.reply["status"] == "in-progress"
    assert scene.task() == before
    assert scene.types(size) == ["protocol.message.received"]


@proves("AOF-AUTHORITY")
@pytest.mark.parametrize("status", [None, "blocked", "backlog"])
def test_it_comes_from_the_holder(scene: Scene, status: str | None) -> None:
    asked: dict[str, Any] = {"notes": "n"} if status is None else {"notes": "n", "status": status}
    stranger = update(agentId="swe-qa", **asked) | {"fromAgent": "swe-qa"}
    nobody = update(taskId=CHILD, **asked) | {"taskId": CHILD}

    assert scene.code(stranger) == "unauthorized_agent"
    assert scene.code(nobody) in ("unassigned_task", "unauthorized_agent")
    assert scene.task().status == "in-progress"


@proves("AOF-REASONS")
def test_no_task_is_refused(scene: Scene) -> None:
    assert scene.code(update(taskId=UNKNOWN, notes="n") | {"taskId": UNKNOWN}) == "task_not_found"
    assert scene.types()[-1] == "protocol.message.rejected"


def test_any_accepted_word_renews_the_lease(scene: Scene) -> None:
    lease = scene.lab.lease(PARENT)
    scene.lab.clock.advance(1_000)
    scene.taken(update(progress="Half"))
    renewed = scene.lab.lease(PARENT)

    assert lease is not None
    assert renewed is not None
    assert renewed.expires_at == lease.expires_at + 1_000
    assert renewed.holder == BACKEND.name
