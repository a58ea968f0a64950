"""ACP messages: sending, queries, size limits, and the messages that handoffs send."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.mail import PostMail
from dragoman.core.task_state import AliasTask, CreateTask
from dragoman.protocols.acp.wire import MESSAGE_TYPES
from tests.protocols.acp.hub import ALICE, BOB, CAROL, HUMAN, OBSERVER, AcpHub
from tests.requirements import proves

pytestmark = proves("ACP-MESSAGES")


def message(type: str = "status.update", **more: Any) -> dict[str, Any]:
    return {"to": ["bob"], "type": type, "payload": {"progress": "half"}, **more}


def message_types(
    hub: AcpHub, actor: Any, operation: str = "acp_inbox", **filters: Any
) -> list[str]:
    reply = hub.reply(filters, actor, operation)
    assert reply["success"], reply
    return [row["type"] for row in reply["messages"]]


def handoff_reference(hub: AcpHub) -> dict[str, Any]:
    """Propose a handoff and return its id and hash as message payload."""
    id = hub.propose()
    return {"handoff_id": id, "package_hash": hub.handoff(id).package_hash}


def test_handoff_messages_need_a_party_and_the_right_package_hash(hub: AcpHub) -> None:
    payload = handoff_reference(hub)
    letter = message("handoff.accept", payload=payload, to=["alice"])
    assert hub.code(letter, BOB, "acp_send") == ""
    assert hub.code(letter, CAROL, "acp_send") == "not_authorized"
    forged = {**payload, "package_hash": "0" * 64}
    assert hub.code(letter | {"payload": forged}, BOB, "acp_send") == "hash_mismatch"
    absent = {**payload, "handoff_id": "absent"}
    assert hub.code(letter | {"payload": absent}, BOB, "acp_send") == "not_found"


def test_coordinator_setting_names_the_default_coordinator(tmp_path: Path) -> None:
    hub = AcpHub(tmp_path, coordinator="boss")
    assert hub.code(message(to=["coordinator"]), ALICE, "acp_send") == ""
    boss = Actor("agent", "boss")
    assert message_types(hub, boss) == ["status.update"]


def test_unregistered_recipient_is_warned_about(hub: AcpHub) -> None:
    letter = message(to=["bob", "bbo", "coordinator"])
    assert "metadata" not in hub.reply(letter, ALICE, "acp_send"), "nobody is registered here"
    for name in ("alice", "bob"):
        hub.lab.do(HUMAN, RegisterAgent(name))
    assert hub.reply(letter, ALICE, "acp_send")["metadata"]["warnings"] == [
        "nobody is registered under the name 'bbo': it waits until somebody is"
    ]
    assert "metadata" not in hub.reply(message(), ALICE, "acp_send")


@pytest.mark.parametrize("operation", ["acp_inbox", "acp_query"])
def test_unknown_message_type_is_refused(hub: AcpHub, operation: str) -> None:
    answer = hub.call({"type": "bogus"}, BOB, operation)
    assert "status.update" in str(answer)
    assert hub.code({"type": "bogus"}, BOB, operation) == "schema_invalid"
    assert message_types(hub, BOB, operation, type="") == []


@pytest.mark.parametrize("type", sorted(MESSAGE_TYPES))
def test_message_of_every_type_arrives_with_its_payload(hub: AcpHub, type: str) -> None:
    is_handoff = type.startswith("handoff.")
    payload = handoff_reference(hub) if is_handoff else {"a": [1, "ü"]}
    sent = hub.reply(message(type, payload=payload, thread_id="th"), ALICE, "acp_send")
    assert (sent["success"], sent["thread_id"]) == (True, "th")
    row = hub.reply({}, BOB, "acp_inbox")["messages"][-1]
    assert (row["message_id"], row["type"], row["payload"]) == (sent["message_id"], type, payload)
    assert (row["from"], row["to"], row["read"]) == ("alice", ("bob",), False)


def test_payload_is_limited_and_validated(hub: AcpHub) -> None:
    def code(letter: dict[str, Any]) -> str:
        return hub.code(letter, ALICE, "acp_send")

    assert code(message(payload={"x": "y" * (4_096 - len('{"x":""}'))})) == ""
    assert code(message(payload={"x": "y" * (4_097 - len('{"x":""}'))})) == "message_too_large"
    assert code(message("handoff.accept", payload={"handoff_id": "h"})) == "schema_invalid"
    assert code(message("handoff.take")) == "schema_invalid"
    assert code(message(to=[])) == "schema_invalid"
    assert code(message(to=["b b"])) == "invalid_id"
    assert code(message(reply_to="gone")) == "not_found"
    assert code(message(**{"from": "bob"})) == "not_authorized"
    assert code(message(**{"from": "alice"})) == ""
    assert hub.code(message(), OBSERVER, "acp_send") == "not_authorized"


def test_messages_are_found_by_thread_task_sender_and_recipient(hub: AcpHub) -> None:
    hub.lab.do(HUMAN, CreateTask("T", id="t-1"))
    for letter in (
        message("status.update", task_id="t-1"),
        message("knowledge.push", to=["carol"], thread_id="th"),
        message("system.ack", to=["carol", "bob"]),
    ):
        hub.reply(letter, ALICE, "acp_send")

    def found(**filters: Any) -> list[str]:
        return message_types(hub, BOB, "acp_query", **filters)

    assert found() == ["status.update", "system.ack"]
    assert found(task_id="t-1") == ["status.update"]
    assert found(thread_id="th") == ["knowledge.push"]
    assert found(**{"from": "alice", "to": "carol"}) == ["knowledge.push", "system.ack"]
    assert found(**{"from": "alice", "type": "system.ack"}) == ["system.ack"]
    page = hub.reply({"from": "alice", "limit": 1}, BOB, "acp_query")
    assert page["more"]
    assert found(**{"from": "alice", "after": page["cursor"]}) == ["knowledge.push", "system.ack"]
    assert hub.code({"task_id": "gone"}, BOB, "acp_query") == "task_not_found"
    for wrong in ({"thread_id": "a b"}, {"from": "a b"}, {"to": "a b"}):
        assert hub.code(wrong, BOB, "acp_query") == "invalid_id"
    assert hub.code({"thread": "x"}, BOB, "acp_query") == "schema_invalid"


def test_inbox_filters_by_unread_and_type(hub: AcpHub) -> None:
    hub.reply(message(), ALICE, "acp_send")
    hub.reply(message("system.error"), ALICE, "acp_send")
    assert message_types(hub, BOB, type="system.error") == ["system.error"]
    assert message_types(hub, BOB, unread=True) == ["status.update", "system.error"]
    assert message_types(hub, CAROL) == []


def test_letters_of_other_kinds_are_hidden_and_text_bodies_are_shown_as_text(hub: AcpHub) -> None:
    hub.lab.do(ALICE, PostMail(("bob",), "lunch?", "at noon"))
    hub.lab.do(ALICE, PostMail(("bob",), "up", "half way", kind="status.update"))
    hub.lab.do(ALICE, PostMail(("bob",), "up", "[]", kind="status.update"))
    rows = hub.reply({}, BOB, "acp_inbox")["messages"]
    assert [row["payload"] for row in rows] == [{"text": "half way"}, {"text": "[]"}]


def test_coordinator_resolves_to_the_agent_of_that_name_or_role(hub: AcpHub) -> None:
    status = message("status.blocked", to=["coordinator"])
    hub.reply(status, ALICE, "acp_send")
    hub.lab.do(HUMAN, RegisterAgent("cora", "coordinator"))
    hub.reply(status, ALICE, "acp_send")
    hub.lab.do(HUMAN, RegisterAgent("coordinator", "agent"))
    hub.reply(status, ALICE, "acp_send")

    def box(name: str) -> int:
        return len(hub.reply({"to": name}, BOB, "acp_query")["messages"])

    assert (box("coordinator"), box("cora")) == (2, 1)


def test_handoff_sends_messages_with_its_id_and_hash_to_both_parties(hub: AcpHub) -> None:
    id = hub.advance_to("closed")
    (initiated,) = hub.reply({"type": "handoff.initiate"}, BOB, "acp_inbox")["messages"]
    assert initiated["payload"] == {"handoff_id": id, "package_hash": hub.handoff(id).package_hash}
    assert "handoff.accept" in message_types(hub, ALICE)
    other = hub.propose(task="t-2")
    detail = "not before the schema is settled; " * 1_000
    hub.act("reject", other, BOB, reason="other", detail=detail)
    (error,) = hub.reply({"type": "system.error"}, ALICE, "acp_inbox")["messages"]
    assert (error["payload"]["reason"], error["payload"]["detail"]) == ("other", detail)


def test_all_names_of_a_task_lead_to_one_thread(hub: AcpHub) -> None:
    """The thread is named after the bead, as in Agent Mail (S-MAIL-8)."""
    hub.lab.do(HUMAN, CreateTask("Login", id="t-1", ready=True, aliases=("bead:ol-1",)))
    task = hub.task("t-1")
    for name in ("t-1", "ol-1", "bead:ol-1", task.aof_id):
        assert hub.reply(message(task_id=name), ALICE, "acp_send")["thread_id"] == "ol-1"
    assert hub.reply(message(thread_id="t-1"), ALICE, "acp_send")["thread_id"] == "ol-1"
    kept = hub.handoff(hub.propose(task="ol-1", thread_id="t-1"))
    assert (kept.task, kept.thread) == ("t-1", "ol-1")
    assert hub.propose(task="ol-1") == kept.id, "the same, and no other thread"
    for name in ("t-1", "ol-1", task.aof_id):
        found = message_types(hub, ALICE, "acp_query", task_id=name)
        assert found == ["status.update"] * 4 + ["handoff.initiate"]
        found = message_types(hub, ALICE, "acp_query", thread_id=name)
        assert found == ["status.update"] * 5 + ["handoff.initiate"]
    assert hub.code({"thread_id": "a b"}, ALICE, "acp_query") == "invalid_id"
    other = hub.propose(task="t-2", thread_id="th-1")
    assert hub.handoff(other).thread == "th-1"


def test_task_query_finds_letters_of_every_handoff_thread(hub: AcpHub) -> None:
    hub.lab.do(HUMAN, CreateTask("Login", id="t-1", ready=True))
    hub.reply(message(task_id="t-1"), ALICE, "acp_send")
    id = hub.propose(thread_id="th-1")
    hub.reply(message("status.blocked", task_id="t-1"), ALICE, "acp_send")
    hub.act("accept", id, BOB)
    hub.lab.do(HUMAN, AliasTask("t-1", "bead:ol-1"))
    hub.reply(message("status.complete", task_id="t-1"), ALICE, "acp_send")
    hub.reply(message("system.ack", thread_id="th-1"), ALICE, "acp_send")
    early = ["status.update", "handoff.initiate", "status.blocked", "handoff.accept"]
    expected = [*early, "status.complete"]
    assert message_types(hub, BOB, "acp_query", task_id="t-1") == expected
    paged, after, more = list[str](), 0, True
    while more:
        page = hub.reply({"task_id": "ol-1", "after": after, "limit": 2}, BOB, "acp_query")
        paged += [row["type"] for row in page["messages"]]
        after, more = page["cursor"], page["more"]
    assert paged == expected
    assert message_types(hub, BOB, "acp_query", task_id="t-1", thread_id="th-1") == expected[1:4:2]


def test_task_query_finds_messages_sent_in_other_threads(hub: AcpHub) -> None:
    hub.lab.do(HUMAN, CreateTask("Login", id="t-1", ready=True))
    for type, thread in (("status.update", "far"), ("system.ack", ""), ("status.blocked", "t-1")):
        hub.reply(message(type, task_id="t-1", thread_id=thread), ALICE, "acp_send")
    hub.reply(message("status.complete", thread_id="far"), ALICE, "acp_send")
    about = ["status.update", "system.ack", "status.blocked"]
    assert message_types(hub, BOB, "acp_query", task_id="t-1") == about
    assert message_types(hub, BOB, "acp_query", task_id="t-1", thread_id="far") == about[:1]
    hub.lab.do(HUMAN, AliasTask("t-1", "bead:ol-1"))
    # Here the thread and the bead are two names of one task.
    hub.lab.do(ALICE, PostMail(("bob",), "s", "{}", "knowledge.push", thread="t-1", bead="ol-1"))
    assert message_types(hub, BOB, "acp_query", task_id="t-1") == [*about, "knowledge.push"]


def test_repeated_offer_keeps_its_thread_after_an_alias_is_added(hub: AcpHub) -> None:
    id = hub.propose(thread_id="t-1")
    hub.lab.do(HUMAN, AliasTask("t-1", "bead:ol-1"))
    assert hub.propose(thread_id="t-1") == id
    assert hub.handoff(id).thread == "t-1"
