"""Messages beside handoffs: sent, found, kept small; and that handoffs themselves send theirs."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import AliasTask, CreateTask, PostMail, RegisterAgent
from dragoman.protocols.acp.messages import TYPES
from tests.protocols.acp.desk import ALICE, BOB, CAROL, HUMAN, OBSERVER, Desk
from tests.requirements import proves

pytestmark = proves("ACP-MESSAGES")


def message(type: str = "status.update", **more: Any) -> dict[str, Any]:
    return {"to": ["bob"], "type": type, "payload": {"progress": "half"}, **more}


def types(desk: Desk, actor: Any, operation: str = "acp_inbox", **asked: Any) -> list[str]:
    reply = desk.say(asked, actor, operation)
    assert reply["success"], reply
    return [row["type"] for row in reply["messages"]]


def about(desk: Desk) -> dict[str, Any]:
    """What a message says of a handoff that there is."""
    id = desk.offered()
    return {"handoff_id": id, "package_hash": desk.handoff(id).package_hash}


def test_only_its_two_sides_speak_about_a_handoff_and_of_its_very_package(desk: Desk) -> None:
    payload = about(desk)
    said = message("handoff.accept", payload=payload, to=["alice"])
    assert desk.code(said, BOB, "acp_send") == ""
    assert desk.code(said, CAROL, "acp_send") == "not_authorized"
    forged = {**payload, "package_hash": "0" * 64}
    assert desk.code(said | {"payload": forged}, BOB, "acp_send") == "hash_mismatch"
    absent = {**payload, "handoff_id": "absent"}
    assert desk.code(said | {"payload": absent}, BOB, "acp_send") == "not_found"


def test_who_is_meant_by_coordinator_where_nobody_is_one_is_chosen(tmp_path: Path) -> None:
    desk = Desk(tmp_path, coordinator="boss")
    assert desk.code(message(to=["coordinator"]), ALICE, "acp_send") == ""
    boss = Actor("agent", "boss")
    assert types(desk, boss) == ["status.update"]


def test_a_name_that_nobody_bears_is_told(desk: Desk) -> None:
    said = message(to=["bob", "bbo", "coordinator"])
    assert "metadata" not in desk.say(said, ALICE, "acp_send"), "nobody is registered here"
    for name in ("alice", "bob"):
        desk.lab.do(HUMAN, RegisterAgent(name))
    assert desk.say(said, ALICE, "acp_send")["metadata"]["warnings"] == [
        "nobody is registered under the name 'bbo': it waits until somebody is"
    ]
    assert "metadata" not in desk.say(message(), ALICE, "acp_send")


@pytest.mark.parametrize("operation", ["acp_inbox", "acp_query"])
def test_a_type_that_there_is_not_is_refused(desk: Desk, operation: str) -> None:
    answer = desk.call({"type": "bogus"}, BOB, operation)
    assert "status.update" in str(answer)
    assert desk.code({"type": "bogus"}, BOB, operation) == "schema_invalid"
    assert types(desk, BOB, operation, type="") == []


@pytest.mark.parametrize("type", sorted(TYPES))
def test_a_message_of_every_type_arrives_with_its_payload(desk: Desk, type: str) -> None:
    is_handoff = type.startswith("handoff.")
    payload = about(desk) if is_handoff else {"a": [1, "ü"]}
    sent = desk.say(message(type, payload=payload, thread_id="th"), ALICE, "acp_send")
    assert (sent["success"], sent["thread_id"]) == (True, "th")
    row = desk.say({}, BOB, "acp_inbox")["messages"][-1]
    assert (row["message_id"], row["type"], row["payload"]) == (sent["message_id"], type, payload)
    assert (row["from"], row["to"], row["read"]) == ("alice", ("bob",), False)


def test_a_payload_is_small_and_that_of_a_handoff_is_its_id_and_hash(desk: Desk) -> None:
    def code(said: dict[str, Any]) -> str:
        return desk.code(said, ALICE, "acp_send")

    assert code(message(payload={"x": "y" * (4_096 - len('{"x":""}'))})) == ""
    assert code(message(payload={"x": "y" * (4_097 - len('{"x":""}'))})) == "message_too_large"
    assert code(message("handoff.accept", payload={"handoff_id": "h"})) == "schema_invalid"
    assert code(message("handoff.take")) == "schema_invalid"
    assert code(message(to=[])) == "schema_invalid"
    assert code(message(to=["b b"])) == "invalid_id"
    assert code(message(reply_to="gone")) == "not_found"
    assert code(message(**{"from": "bob"})) == "not_authorized"
    assert code(message(**{"from": "alice"})) == ""
    assert desk.code(message(), OBSERVER, "acp_send") == "not_authorized"


def test_messages_are_found_by_thread_task_sender_and_recipient(desk: Desk) -> None:
    desk.lab.do(HUMAN, CreateTask("T", id="t-1"))
    for said in (
        message("status.update", task_id="t-1"),
        message("knowledge.push", to=["carol"], thread_id="th"),
        message("system.ack", to=["carol", "bob"]),
    ):
        desk.say(said, ALICE, "acp_send")

    def found(**asked: Any) -> list[str]:
        return types(desk, BOB, "acp_query", **asked)

    assert found() == ["status.update", "system.ack"]
    assert found(task_id="t-1") == ["status.update"]
    assert found(thread_id="th") == ["knowledge.push"]
    assert found(**{"from": "alice", "to": "carol"}) == ["knowledge.push", "system.ack"]
    assert found(**{"from": "alice", "type": "system.ack"}) == ["system.ack"]
    page = desk.say({"from": "alice", "limit": 1}, BOB, "acp_query")
    assert page["more"]
    assert found(**{"from": "alice", "after": page["cursor"]}) == ["knowledge.push", "system.ack"]
    assert desk.code({"task_id": "gone"}, BOB, "acp_query") == "task_not_found"
    for wrong in ({"thread_id": "a b"}, {"from": "a b"}, {"to": "a b"}):
        assert desk.code(wrong, BOB, "acp_query") == "invalid_id"
    assert desk.code({"thread": "x"}, BOB, "acp_query") == "schema_invalid"


def test_a_box_shows_what_is_unread_and_of_a_type(desk: Desk) -> None:
    desk.say(message(), ALICE, "acp_send")
    desk.say(message("system.error"), ALICE, "acp_send")
    assert types(desk, BOB, type="system.error") == ["system.error"]
    assert types(desk, BOB, unread=True) == ["status.update", "system.error"]
    assert types(desk, CAROL) == []


def test_letters_of_other_kinds_are_not_shown_and_one_by_hand_is_shown_as_text(desk: Desk) -> None:
    desk.lab.do(ALICE, PostMail(("bob",), "lunch?", "at noon"))
    desk.lab.do(ALICE, PostMail(("bob",), "up", "half way", kind="status.update"))
    desk.lab.do(ALICE, PostMail(("bob",), "up", "[]", kind="status.update"))
    rows = desk.say({}, BOB, "acp_inbox")["messages"]
    assert [row["payload"] for row in rows] == [{"text": "half way"}, {"text": "[]"}]


def test_the_coordinator_is_whoever_has_that_role(desk: Desk) -> None:
    to_role = message("status.blocked", to=["coordinator"])
    desk.say(to_role, ALICE, "acp_send")
    desk.lab.do(HUMAN, RegisterAgent("cora", "coordinator"))
    desk.say(to_role, ALICE, "acp_send")
    desk.lab.do(HUMAN, RegisterAgent("coordinator", "agent"))
    desk.say(to_role, ALICE, "acp_send")

    def box(name: str) -> int:
        return len(desk.say({"to": name}, BOB, "acp_query")["messages"])

    assert (box("coordinator"), box("cora")) == (2, 1)


def test_a_handoff_tells_its_sides_with_its_id_and_hash(desk: Desk) -> None:
    id = desk.at("closed")
    (told,) = desk.say({"type": "handoff.initiate"}, BOB, "acp_inbox")["messages"]
    assert told["payload"] == {"handoff_id": id, "package_hash": desk.handoff(id).package_hash}
    assert "handoff.accept" in types(desk, ALICE)
    other = desk.offered(task="t-2")
    why = "not before the schema is settled; " * 1_000
    desk.do("reject", other, BOB, reason="other", detail=why)
    (error,) = desk.say({"type": "system.error"}, ALICE, "acp_inbox")["messages"]
    assert (error["payload"]["reason"], error["payload"]["detail"]) == ("other", why)


def test_the_letters_about_a_task_are_in_one_thread_whatever_it_is_called(desk: Desk) -> None:
    """That of its bead, as letters of Agent Mail have it (S-MAIL-8)."""
    desk.lab.do(HUMAN, CreateTask("Login", id="t-1", ready=True, aliases=("bead:ol-1",)))
    task = desk.task("t-1")
    for name in ("t-1", "ol-1", "bead:ol-1", task.aof_id):
        assert desk.say(message(task_id=name), ALICE, "acp_send")["thread_id"] == "ol-1"
    assert desk.say(message(thread_id="t-1"), ALICE, "acp_send")["thread_id"] == "ol-1"
    kept = desk.handoff(desk.offered(task="ol-1", thread_id="t-1"))
    assert (kept.task, kept.thread) == ("t-1", "ol-1")
    assert desk.offered(task="ol-1") == kept.id, "the same, and no other thread"
    for name in ("t-1", "ol-1", task.aof_id):
        found = types(desk, ALICE, "acp_query", task_id=name)
        assert found == ["status.update"] * 4 + ["handoff.initiate"]
        found = types(desk, ALICE, "acp_query", thread_id=name)
        assert found == ["status.update"] * 5 + ["handoff.initiate"]
    assert desk.code({"thread_id": "a b"}, ALICE, "acp_query") == "invalid_id"
    other = desk.offered(task="t-2", thread_id="th-1")
    assert desk.handoff(other).thread == "th-1"


def test_letters_about_a_task_are_found_by_it_in_whichever_thread_it_was_offered(
    desk: Desk,
) -> None:
    desk.lab.do(HUMAN, CreateTask("Login", id="t-1", ready=True))
    desk.say(message(task_id="t-1"), ALICE, "acp_send")
    id = desk.offered(thread_id="th-1")
    desk.say(message("status.blocked", task_id="t-1"), ALICE, "acp_send")
    desk.do("accept", id, BOB)
    desk.lab.do(HUMAN, AliasTask("t-1", "bead:ol-1"))
    desk.say(message("status.complete", task_id="t-1"), ALICE, "acp_send")
    desk.say(message("system.ack", thread_id="th-1"), ALICE, "acp_send")
    begun = ["status.update", "handoff.initiate", "status.blocked", "handoff.accept"]
    told = [*begun, "status.complete"]
    assert types(desk, BOB, "acp_query", task_id="t-1") == told
    paged, after, more = list[str](), 0, True
    while more:
        page = desk.say({"task_id": "ol-1", "after": after, "limit": 2}, BOB, "acp_query")
        paged += [row["type"] for row in page["messages"]]
        after, more = page["cursor"], page["more"]
    assert paged == told
    assert types(desk, BOB, "acp_query", task_id="t-1", thread_id="th-1") == told[1:4:2]


def test_a_message_about_a_task_is_found_by_it_in_whichever_thread_it_was_sent(desk: Desk) -> None:
    desk.lab.do(HUMAN, CreateTask("Login", id="t-1", ready=True))
    for type, thread in (("status.update", "far"), ("system.ack", ""), ("status.blocked", "t-1")):
        desk.say(message(type, task_id="t-1", thread_id=thread), ALICE, "acp_send")
    desk.say(message("status.complete", thread_id="far"), ALICE, "acp_send")
    about = ["status.update", "system.ack", "status.blocked"]
    assert types(desk, BOB, "acp_query", task_id="t-1") == about
    assert types(desk, BOB, "acp_query", task_id="t-1", thread_id="far") == about[:1]
    desk.lab.do(HUMAN, AliasTask("t-1", "bead:ol-1"))
    # Of two names of one task, the one is the thread of this and the other what it is about.
    desk.lab.do(ALICE, PostMail(("bob",), "s", "{}", "knowledge.push", thread="t-1", bead="ol-1"))
    assert types(desk, BOB, "acp_query", task_id="t-1") == [*about, "knowledge.push"]


def test_a_thread_keeps_its_name_for_a_repeat(desk: Desk) -> None:
    id = desk.offered(thread_id="t-1")
    desk.lab.do(HUMAN, AliasTask("t-1", "bead:ol-1"))
    assert desk.offered(thread_id="t-1") == id
    assert desk.handoff(id).thread == "t-1"
