"""Status updates: transition or work log, reason, time and authority (S-AOF-4, S-AOF-6)."""

from typing import Any

import pytest

from tests.protocols.aof.hub import BACKEND, CHILD, PARENT, UNKNOWN, AofHub, update
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
def test_reason_is_the_first_of_blockers_notes_and_progress(
    hub: AofHub, fields: dict[str, Any], reason: str
) -> None:
    before = hub.head()
    hub.accept(update(status="blocked", **fields))

    received, moved = hub.lines(before)
    assert received["type"] == "protocol.message.received"
    assert moved["type"] == "task.transitioned"
    assert moved["payload"] == {"from": "in-progress", "to": "blocked", "reason": reason}
    assert (moved["actor"], moved["taskId"]) == ("swe-backend", PARENT)


@pytest.mark.parametrize("status", [None, "in-progress", "backlog", "done"])
def test_update_without_a_possible_transition_is_written_to_the_work_log(
    hub: AofHub, status: str | None
) -> None:
    before = hub.head()
    fields = {} if status is None else {"status": status}
    hub.accept(update(progress="Half", notes="n", blockers=["b"], **fields))

    assert hub.task().status == "in-progress"
    assert hub.types(before) == ["protocol.message.received", "task.updated"]
    assert hub.lines(before)[1]["payload"] == {
        "progress": "Half",
        "notes": "n",
        "blockers": ["b"],
        "sentAt": "2026-02-09T21:00:00.000Z",
    }


@proves("AOF-REPEAT")
def test_same_status_without_text_changes_nothing(hub: AofHub) -> None:
    before = hub.task()
    size = hub.head()
    answer = hub.accept(update(status="in-progress"))

    assert answer.reply["status"] == "in-progress"
    assert hub.task() == before
    assert hub.types(size) == ["protocol.message.received"]


@proves("AOF-AUTHORITY")
@pytest.mark.parametrize("status", [None, "blocked", "backlog"])
def test_update_must_come_from_the_holder(hub: AofHub, status: str | None) -> None:
    fields: dict[str, Any] = {"notes": "n"} if status is None else {"notes": "n", "status": status}
    stranger = update(agentId="swe-qa", **fields) | {"fromAgent": "swe-qa"}
    unassigned = update(taskId=CHILD, **fields) | {"taskId": CHILD}

    assert hub.code(stranger) == "unauthorized_agent"
    assert hub.code(unassigned) in ("unassigned_task", "unauthorized_agent")
    assert hub.task().status == "in-progress"


@proves("AOF-REASONS")
def test_update_about_an_unknown_task_is_refused(hub: AofHub) -> None:
    assert hub.code(update(taskId=UNKNOWN, notes="n") | {"taskId": UNKNOWN}) == "task_not_found"
    assert hub.types()[-1] == "protocol.message.rejected"


def test_accepted_update_renews_the_lease(hub: AofHub) -> None:
    lease = hub.lab.lease(PARENT)
    hub.lab.clock.advance(1_000)
    hub.accept(update(progress="Half"))
    renewed = hub.lab.lease(PARENT)

    assert lease is not None
    assert renewed is not None
    assert renewed.expires_at == lease.expires_at + 1_000
    assert renewed.holder == BACKEND.name
