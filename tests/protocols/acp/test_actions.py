"""The actions of `acp_handoff`: the whole way, wrong callers, repeats, and one form of answer."""

from pathlib import Path
from typing import Any, cast

import pytest

from dragoman.core.commands import CreateTask, MoveTask, RegisterAgent
from dragoman.core.states.handoff_package import hash_of
from dragoman.engine.plan import Turned
from dragoman.protocols.acp.actions import USUAL
from tests.protocols.acp.desk import (
    ALICE,
    BOB,
    CAROL,
    COORDINATOR,
    HUMAN,
    OBSERVER,
    Desk,
    artifact,
    offer,
)
from tests.requirements import proves

pytestmark = proves("ACP-RESPONSE")

NOBODY = "0" * 64


def test_the_whole_way_from_the_offer_to_the_closed_record(desk: Desk) -> None:
    desk.put()
    id = desk.offered(artifacts=[artifact()], reason="holidays")
    assert (desk.task().assignee, desk.handoff(id).reason) == ("alice", "holidays")

    taken = desk.do("accept", id, BOB, notes="gladly")
    assert taken == {
        "success": True,
        "handoff_id": id,
        "status": "accepted",
        "metadata": {
            "escalation_triggered": False,
            "verification_passed": ["schema", "policy", "artifacts", "cycle", "package_hash"],
            "verification_failed": [],
        },
    }
    begun = desk.do("activate", id, BOB, work_state_update={"percent_complete": 50})
    assert (begun["status"], begun["metadata"]["workq_status"]) == ("activated", "not_applicable")
    assert (begun["metadata"]["attempt"], begun["metadata"]["fence"]) == (1, 1)
    assert (desk.task().assignee, desk.task().status) == ("bob", "in-progress")
    assert desk.do("complete", id, BOB, completion_notes="all")["status"] == "completed"
    assert desk.do("close", id, ALICE, closure_notes="thanks")["status"] == "closed"


@proves("ACP-SLA")
def test_who_is_late_is_told_so_also_where_nobody_has_looked(desk: Desk) -> None:
    id = desk.offered()
    desk.lab.clock.advance(3_600_000)
    assert desk.do("accept", id, BOB)["metadata"]["escalation_triggered"] is True
    assert [one.stage for one in desk.handoff(id).escalations] == ["proposed→validating"]


def test_the_way_of_a_server_is_the_same(desk: Desk) -> None:
    id = desk.soon(offer(), ALICE)["handoff_id"]
    on = {"handoff_id": id}
    assert desk.soon({"action": "accept", **on}, BOB)["status"] == "accepted"
    no = desk.soon({"action": "activate", **on}, CAROL)
    assert (no["success"], no["status"]) == (False, "accepted")
    assert [row["handoff_id"] for row in desk.soon({"action": "query"}, CAROL)["handoffs"]] == [id]


@proves("ACP-PACKAGE")
def test_what_the_hub_knows_is_filled_in_and_the_hash_stands_for_all_of_it(desk: Desk) -> None:
    said = {"origin_session": "s-7", "handoff_chain": ["eve"], "decision_refs": ["adr-7"]}
    kept = desk.handoff(desk.offered(provenance=said, thread_id="th-1"))
    package: Any = kept.package
    assert package["provenance"] == {
        "origin_session": "agent:alice",
        "handoff_chain": ["alice"],
        "decision_refs": ["adr-7"],
        "message_thread_refs": ["th-1"],
    }
    assert (package["handoff_id"], package["thread_id"]) == (kept.id, "th-1")
    assert package["policy"] == {"classification": "internal", "requires_human_approval": False}
    assert package["verification"] == {
        "schema_version": "1.0.0",
        "package_hash": kept.package_hash,
    }
    assert hash_of(package) == kept.package_hash


@proves("ACP-PACKAGE")
def test_a_stated_hash_is_that_of_the_package_as_it_was_written(desk: Desk) -> None:
    parts = ("task", "context", "work_state")
    said = offer()
    written: dict[str, Any] = {name: said[name] for name in parts}
    stated = hash_of({**written, "verification": {}})
    wrong = offer(verification={"package_hash": NOBODY})
    assert desk.code(wrong, ALICE) == "hash_mismatch"
    assert desk.code(offer(verification={"package_hash": stated}), ALICE) == ""


STRANGERS: dict[str, tuple[str, Any, dict[str, str]]] = {
    "accept": ("proposed", CAROL, {}),
    "reject": ("proposed", CAROL, {"reason": "other", "detail": "no"}),
    "activate": ("accepted", ALICE, {}),
    "complete": ("activated", ALICE, {}),
    "close": ("completed", BOB, {}),
    "withdraw": ("proposed", BOB, {}),
    "extend_sla": ("proposed", ALICE, {"by": "30m"}),
    "reassign": ("proposed", ALICE, {"to_agent": "carol"}),
    "approve": ("proposed", COORDINATOR, {}),
    "deny": ("proposed", BOB, {}),
}


@pytest.mark.parametrize("action", STRANGERS)
def test_a_wrong_caller_is_told_so_and_where_the_handoff_stands(desk: Desk, action: str) -> None:
    state, actor, more = STRANGERS[action]
    id = desk.at(state)
    reply = desk.do(action, id, actor, **more)
    assert reply["error"]["code"] == "not_authorized"
    assert (reply["success"], reply["handoff_id"], reply["status"]) == (False, id, state)
    assert desk.code({"action": action, "handoff_id": id, **more}, OBSERVER) == "not_authorized"


@pytest.mark.parametrize("action", STRANGERS)
def test_what_is_not_there_and_what_can_be_no_id(desk: Desk, action: str) -> None:
    actor, more = BOB, STRANGERS[action][2]
    assert desk.code({"action": action, "handoff_id": "gone", **more}, actor) == "not_found"
    assert desk.code({"action": action, "handoff_id": "a b", **more}, actor) == "invalid_id"


def test_a_wrong_state_is_told_with_what_can_be_done(desk: Desk) -> None:
    id = desk.at("proposed")
    reply = desk.do("complete", id, BOB)
    assert reply["error"]["code"] == "invalid_transition"
    assert "accept" in reply["error"]["detail"]


def test_the_kinds_of_an_ownership_conflict(desk: Desk) -> None:
    id = desk.at("proposed")

    def kind(said: dict[str, Any], actor: Any) -> Any:
        reply = desk.say(said, actor)
        assert reply["error"]["code"] == "ownership_conflict"
        return reply["error"]["kind"]

    assert kind(offer(to="carol"), ALICE) == "active_handoff"
    desk.do("accept", id, BOB)
    desk.do("activate", id, BOB)
    desk.do("complete", id, BOB)
    assert kind(offer(to="carol"), ALICE) == "not_owner"
    assert kind(offer(to="alice"), BOB) == "cycle"


@pytest.mark.parametrize("action", ["accept", "activate", "complete", "close"])
def test_an_action_said_twice_is_answered_as_before_and_adds_nothing(
    desk: Desk, action: str
) -> None:
    before = {"accept": "proposed", "activate": "accepted", "complete": "activated"}
    id = desk.at(before.get(action, "completed"))
    actor = ALICE if action == "close" else BOB
    first = desk.do(action, id, actor)
    head = desk.lab.store.head()
    assert desk.do(action, id, actor) == first
    assert desk.lab.store.head() == head


@proves("ACP-REPEAT")
def test_what_was_done_is_answered_as_before_when_the_handoff_has_gone_on(desk: Desk) -> None:
    id = desk.at("closed")
    head = desk.lab.store.head()
    for action in ("accept", "activate", "complete"):
        reply = desk.do(action, id, BOB)
        assert (reply["success"], reply["status"]) == (True, "closed"), reply
    assert "verification_passed" in desk.do("accept", id, BOB)["metadata"]
    assert "fence" not in desk.do("activate", id, BOB)["metadata"]
    assert desk.lab.store.head() == head
    assert desk.code({"action": "complete", "handoff_id": id, "completion_notes": "x"}, BOB)
    down = desk.offered(task="t-2", artifacts=[artifact()])
    no = desk.do("accept", down, BOB)
    desk.do("close", down, ALICE)
    assert desk.do("accept", down, BOB)["error"] == no["error"]


@proves("ACP-GOES-ON")
def test_a_recipient_that_was_silent_activates_again_and_completes(desk: Desk) -> None:
    id = desk.at("activated")
    desk.lab.clock.advance(21 * 60_000)
    assert desk.code({"action": "complete", "handoff_id": id}, BOB) == "lease_lost"
    begun = desk.do("activate", id, BOB)
    assert (begun["status"], begun["metadata"]["fence"]) == ("activated", 2)
    assert desk.do("complete", id, BOB)["status"] == "completed"


def test_an_offer_said_twice_is_the_same_offer(desk: Desk) -> None:
    first = desk.say(offer(), ALICE)
    head = desk.lab.store.head()
    assert desk.say(offer(), ALICE) == first
    assert desk.lab.store.head() == head


def test_the_answers_of_a_coordinator(desk: Desk) -> None:
    id = desk.at("proposed")
    assert desk.do("extend_sla", id, COORDINATOR, by="30m")["success"]
    moved = desk.do("reassign", id, COORDINATOR, to_agent="carol", notes="bob is away")
    assert (moved["status"], desk.handoff(moved["handoff_id"]).recipient) == ("proposed", "carol")
    assert desk.handoff(id).status == "rejected"
    forced = {"reason": "timeout_risk", "detail": "too late"}
    assert desk.do("reject", moved["handoff_id"], COORDINATOR, **forced)["success"]


def test_a_rejection_gives_its_reason_and_another_try_supersedes_it(desk: Desk) -> None:
    id = desk.at("activated")
    no = {"reason": "capacity_unavailable", "detail": "no time", "suggested_fix": "ask carol"}
    assert desk.do("reject", id, BOB, **no)["status"] == "rejected"
    assert (desk.task().status, desk.task().assignee) == ("ready", "alice")
    counter = desk.say(offer(to="carol", supersedes=id), ALICE)
    assert desk.handoff(counter["handoff_id"]).supersedes == id
    assert desk.do("withdraw", counter["handoff_id"], ALICE, notes="later")["status"] == "rejected"


def test_a_deadline_of_its_own_is_when_the_work_is_late(desk: Desk) -> None:
    at_noon = offer(deadline="2026-02-10T12:00:00Z", sla={"proposed": "1m", "accepted": "2h"})
    kept = desk.handoff(desk.say(at_noon, ALICE)["handoff_id"])
    assert kept.due_at == 1_770_724_800_000
    task: Any = kept.package["task"]
    assert task["deadline"] == "2026-02-10T12:00:00Z", "the hash stands for it"
    other = offer(deadline="2026-02-10T12:00:01Z", sla={"proposed": "1m", "accepted": "2h"})
    assert desk.code(at_noon, ALICE) == ""
    assert desk.code(other, ALICE) == "ownership_conflict"
    assert (kept.sla_ms["proposed"], kept.sla_ms["accepted"]) == (60_000, 7_200_000)


def test_two_deadlines_that_differ_are_refused_and_an_sla_beside_one_is_told(desk: Desk) -> None:
    within = {**offer()["task"], "deadline": "2026-02-10T12:00:00Z"}
    twice = {**offer(deadline="2026-02-11T12:00:00Z"), "task": within}
    stated = desk.call(twice, ALICE)
    assert isinstance(stated, Turned)
    assert stated.reply["error"] == {
        "code": "schema_invalid",
        "detail": "deadline: task.deadline is another one, 2026-02-10T12:00:00Z: state it once",
    }
    draft = {"action": "draft", "handoff_id": "d-1", "task": within}
    desk.say({**draft, "deadline": "2026-02-11T12:00:00Z"}, ALICE)
    lacks = desk.do("validate", "d-1", ALICE)["metadata"]["verification_failed"]
    assert "deadline: task.deadline is another one" in str(lacks)
    same = offer(deadline="2026-02-10T13:00:00+01:00", sla={"activated": "2h"})
    reply = desk.say({**same, "task": within}, ALICE)
    (told,) = reply["metadata"]["warnings"]
    assert told.startswith("sla.activated is not used: the deadline 2026-02-10T12:00:00.000Z is")


def test_a_known_task_is_not_adopted_and_an_unknown_one_only_if_that_is_wanted(
    tmp_path: Path,
) -> None:
    strict = Desk(tmp_path, adopt=False)
    assert strict.code(offer(), ALICE) == "task_not_found"
    strict.lab.do(HUMAN, CreateTask("Known", id="t-1", ready=True))
    assert strict.code(offer(), ALICE) == ""
    assert strict.task().title == "Known"


WRONG: dict[str, tuple[Any, str]] = {
    "no object": ([], "no JSON object"),
    "no action": ({}, "action"),
    "an unknown action": ({"action": "take"}, "action"),
    "an unknown argument": ({"action": "accept", "handoff_id": "h", "note": "x"}, "note"),
    "no id": ({"action": "accept"}, "handoff_id"),
    "no detail": ({"action": "reject", "handoff_id": "h", "reason": "other"}, "detail"),
    "a blank detail": (
        {"action": "reject", "handoff_id": "h", "reason": "other", "detail": " "},
        "detail",
    ),
    "no reason": ({"action": "reject", "handoff_id": "h", "detail": "x"}, "reason"),
    "no length of time": ({"action": "extend_sla", "handoff_id": "h", "by": "soon"}, "by"),
    "no length of time for a state": (offer(sla={"accepted": "soon"}), "sla.accepted"),
    "a state that has no time": (offer(sla={"closed": "1h"}), "sla.closed"),
    "an artifact that is none of it": (
        {"action": "complete", "handoff_id": "h", "final_artifacts": [artifact(path="../x")]},
        "final_artifacts[0].ref.path",
    ),
}


@pytest.mark.parametrize("which", WRONG)
def test_arguments_that_are_wrong_are_named_with_their_place(desk: Desk, which: str) -> None:
    said, place = WRONG[which]
    answer = desk.door.call("acp_handoff", said, BOB)
    assert isinstance(answer, Turned)
    assert (answer.code, answer.reply["error"]["code"]) == ("schema_invalid", "schema_invalid")
    assert place in answer.detail


@pytest.mark.parametrize(
    "text",
    [
        b'{"action":"query","action":"accept"}',
        b'{"action":"initiate","to_agent":"b","task":{"a":1,"a":2}}',
        b'{"action":"query","limit":9007199254740993}',
        b"{",
    ],
)
def test_json_that_can_be_read_in_two_ways_is_refused_whole(desk: Desk, text: bytes) -> None:
    answer = desk.door.call("acp_handoff", text, ALICE)
    assert isinstance(answer, Turned)
    assert answer.reply["error"]["code"] == "schema_invalid"


def test_nobody_hands_over_in_the_name_of_somebody_else(desk: Desk) -> None:
    assert desk.code(offer(from_agent="alice"), BOB) == "not_authorized"
    assert desk.code(offer(from_agent="alice"), ALICE) == ""


def test_without_a_place_for_artifacts_nothing_is_accepted_that_has_some(tmp_path: Path) -> None:
    bare = Desk(tmp_path, artifacts=None)
    id = bare.offered(artifacts=[artifact()])
    reply = bare.do("accept", id, BOB)
    assert (reply["status"], reply["error"]["code"]) == ("validating", "try_again")


def test_a_client_that_sends_every_published_default_has_said_nothing_by_that(
    desk: Desk,
) -> None:
    given = desk.say({**USUAL, **offer()}, ALICE)
    assert given["success"], given
    query = desk.say({**USUAL, "action": "query"}, BOB)
    assert [row["handoff_id"] for row in query["handoffs"]] == [given["handoff_id"]]
    accept = {**USUAL, "action": "accept", "handoff_id": given["handoff_id"]}
    assert desk.say(accept, BOB)["status"] == "accepted"
    draft = desk.say({**USUAL, "action": "draft", "context": {"summary": "So far."}}, ALICE)
    assert draft["success"], draft
    other = {**USUAL, "action": "activate", "handoff_id": given["handoff_id"], "by": "30m"}
    assert desk.code(other, BOB) == "schema_invalid"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"action": "extend_sla", "by": "1x"}, "a number with its unit"),
        ({"action": "reject", "reason": "other", "detail": " "}, "not empty and not blank"),
        ({"action": "approve", "package_hash": "A" * 64}, "lower-case hexadecimal"),
    ],
)
def test_what_is_wrong_is_said_in_words(desk: Desk, said: dict[str, Any], words: str) -> None:
    assert words in desk.say({**said, "handoff_id": "h"}, HUMAN)["error"]["detail"]


@proves("ACP-TOLD")
def test_an_offer_is_answered_with_its_hash_and_its_time(desk: Desk) -> None:
    said = desk.say(offer(handoff_id="h-1"), ALICE)
    kept = desk.handoff("h-1")
    told = {"package_hash": kept.package_hash, "due_by": "2026-02-09T14:35:00.000Z"}
    assert said["metadata"] == told
    assert desk.say(offer(handoff_id="h-1"), ALICE) == said
    longer = desk.do("extend_sla", "h-1", COORDINATOR, by="30m")
    assert longer["metadata"]["due_by"] == "2026-02-09T15:05:00.000Z"
    assert desk.do("extend_sla", "h-1", COORDINATOR, by="30m") == longer
    instead = desk.do("reassign", "h-1", COORDINATOR, to_agent="carol")
    new = desk.handoff(instead["handoff_id"])
    assert instead["metadata"] == {**told, "package_hash": new.package_hash}


@proves("ACP-TOLD")
def test_an_approval_that_nobody_asked_for_is_said_to_be_one(desk: Desk) -> None:
    plain = desk.do("approve", desk.offered(), HUMAN)
    assert (plain["success"], "nobody has asked" in plain["metadata"]["warnings"][0]) == (
        True,
        True,
    )
    gated = desk.offered(task="t-2", policy={"requires_human_approval": True})
    assert "metadata" not in desk.do("approve", gated, HUMAN)


@proves("ACP-CHAIN")
def test_who_has_it_is_not_offered_it(desk: Desk) -> None:
    no = desk.say(offer(to="alice"), ALICE)["error"]
    assert (no["kind"], no["detail"]) == ("cycle", "alice has it now: name somebody else")


@proves("ACP-CAN-ACCEPT")
def test_an_offer_to_somebody_who_cannot_accept_it_is_told(desk: Desk) -> None:
    def warnings(task: str, to: str) -> list[str]:
        reply = desk.say(offer(to=to, task=task), ALICE)
        assert reply["success"], reply
        return reply["metadata"].get("warnings", [])

    assert warnings("t-1", "nobody") == [], "nobody is registered here, and every name is good"
    for name, role in (("alice", "agent"), ("bob", "agent"), ("obs", "observer")):
        desk.lab.do(HUMAN, RegisterAgent(name, role=cast(Any, role)))
    assert warnings("t-2", "bob") == []
    assert warnings("t-3", "obs") == ["obs is registered as observer, and can accept nothing"]
    (told,) = warnings("t-4", "nobody")
    assert told == "nobody is registered under the name 'nobody': it waits until somebody is"
    desk.lab.do(
        HUMAN,
        CreateTask("Six", id="t-6", ready=True, assignee="alice"),
        MoveTask("t-6", "deadletter"),
    )
    (told,) = warnings("t-6", "bob")
    assert told == (
        "t-6 is in the deadletter: nobody can begin before a person, a coordinator or an "
        "orchestrator has made it ready"
    )
    desk.lab.do(HUMAN, RegisterAgent("cora", role="coordinator"))
    id = desk.offered(task="t-5")
    for action in ("propose", "validate"):
        no = desk.do(action, id, CAROL)
        assert (no["error"]["code"], "status" in no) == ("not_found", False)
    moved = desk.do("reassign", id, COORDINATOR, to_agent="obs")
    assert moved["metadata"]["warnings"][0].startswith("obs is registered as observer")
