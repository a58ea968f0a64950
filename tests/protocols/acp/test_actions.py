"""Actions of `acp_handoff`: life cycle, authorization, repeats and the form of replies."""

from pathlib import Path
from typing import Any, cast

import pytest

from dragoman.core.agent import RegisterAgent
from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.task_state import CreateTask
from dragoman.engine.request import Rejected
from dragoman.protocols.acp.wire import CALL_DEFAULTS
from tests.protocols.acp.hub import (
    ALICE,
    BOB,
    CAROL,
    COORDINATOR,
    HUMAN,
    OBSERVER,
    AcpHub,
    artifact,
    offer,
)
from tests.requirements import proves

pytestmark = proves("ACP-RESPONSE")

ZERO_HASH = "0" * 64


def test_handoff_goes_from_offer_to_closed(hub: AcpHub) -> None:
    hub.write_artifact()
    id = hub.propose(artifacts=[artifact()], reason="holidays")
    assert (hub.task().assignee, hub.handoff(id).reason) == ("alice", "holidays")

    accepted = hub.act("accept", id, BOB, notes="gladly")
    assert accepted == {
        "success": True,
        "handoff_id": id,
        "status": "accepted",
        "metadata": {
            "escalation_triggered": False,
            "verification_passed": ["schema", "policy", "artifacts", "cycle", "package_hash"],
            "verification_failed": [],
        },
    }
    activated = hub.act("activate", id, BOB, work_state_update={"percent_complete": 50})
    assert (activated["status"], activated["metadata"]["workq_status"]) == (
        "activated",
        "not_applicable",
    )
    assert (activated["metadata"]["attempt"], activated["metadata"]["fence"]) == (1, 1)
    assert (hub.task().assignee, hub.task().status) == ("bob", "in-progress")
    assert hub.act("complete", id, BOB, completion_notes="all")["status"] == "completed"
    assert hub.act("close", id, ALICE, closure_notes="thanks")["status"] == "closed"


@proves("ACP-SLA")
def test_overdue_accept_reports_the_escalation_before_the_sla_service_ran(hub: AcpHub) -> None:
    id = hub.propose()
    hub.lab.clock.advance(3_600_000)
    assert hub.act("accept", id, BOB)["metadata"]["escalation_triggered"] is True
    assert [one.stage for one in hub.handoff(id).escalations] == ["proposed→validating"]


def test_async_calls_behave_like_synchronous_ones(hub: AcpHub) -> None:
    id = hub.reply_async(offer(), ALICE)["handoff_id"]
    target = {"handoff_id": id}
    assert hub.reply_async({"action": "accept", **target}, BOB)["status"] == "accepted"
    refused = hub.reply_async({"action": "activate", **target}, CAROL)
    assert (refused["success"], refused["status"]) == (False, "accepted")
    assert [
        row["handoff_id"] for row in hub.reply_async({"action": "query"}, CAROL)["handoffs"]
    ] == [id]


@proves("ACP-PACKAGE")
def test_hub_fills_in_provenance_and_hashes_the_whole_package(hub: AcpHub) -> None:
    provenance = {"origin_session": "s-7", "handoff_chain": ["eve"], "decision_refs": ["adr-7"]}
    kept = hub.handoff(hub.propose(provenance=provenance, thread_id="th-1"))
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
    assert compute_package_hash(package) == kept.package_hash


@proves("ACP-PACKAGE")
def test_stated_hash_covers_the_package_as_written(hub: AcpHub) -> None:
    parts = ("task", "context", "work_state")
    arguments = offer()
    written: dict[str, Any] = {name: arguments[name] for name in parts}
    stated = compute_package_hash({**written, "verification": {}})
    wrong = offer(verification={"package_hash": ZERO_HASH})
    assert hub.code(wrong, ALICE) == "hash_mismatch"
    assert hub.code(offer(verification={"package_hash": stated}), ALICE) == ""


FORBIDDEN: dict[str, tuple[str, Any, dict[str, str]]] = {
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


@pytest.mark.parametrize("action", FORBIDDEN)
def test_wrong_caller_is_refused_with_the_handoff_status(hub: AcpHub, action: str) -> None:
    state, actor, more = FORBIDDEN[action]
    id = hub.advance_to(state)
    reply = hub.act(action, id, actor, **more)
    assert reply["error"]["code"] == "not_authorized"
    assert (reply["success"], reply["handoff_id"], reply["status"]) == (False, id, state)
    assert hub.code({"action": action, "handoff_id": id, **more}, OBSERVER) == "not_authorized"


@pytest.mark.parametrize("action", FORBIDDEN)
def test_unknown_and_invalid_handoff_ids_are_refused(hub: AcpHub, action: str) -> None:
    actor, more = BOB, FORBIDDEN[action][2]
    assert hub.code({"action": action, "handoff_id": "gone", **more}, actor) == "not_found"
    assert hub.code({"action": action, "handoff_id": "a b", **more}, actor) == "invalid_id"


def test_wrong_state_is_refused_with_the_possible_actions(hub: AcpHub) -> None:
    id = hub.advance_to("proposed")
    reply = hub.act("complete", id, BOB)
    assert reply["error"]["code"] == "invalid_transition"
    assert "accept" in reply["error"]["detail"]


def test_ownership_conflict_names_its_kind(hub: AcpHub) -> None:
    id = hub.advance_to("proposed")

    def kind(arguments: dict[str, Any], actor: Any) -> Any:
        reply = hub.reply(arguments, actor)
        assert reply["error"]["code"] == "ownership_conflict"
        return reply["error"]["kind"]

    assert kind(offer(to="carol"), ALICE) == "active_handoff"
    hub.act("accept", id, BOB)
    hub.act("activate", id, BOB)
    hub.act("complete", id, BOB)
    assert kind(offer(to="carol"), ALICE) == "not_owner"
    assert kind(offer(to="alice"), BOB) == "cycle"


@pytest.mark.parametrize("action", ["accept", "activate", "complete", "close"])
def test_repeated_action_gets_the_same_reply_and_records_nothing(hub: AcpHub, action: str) -> None:
    before = {"accept": "proposed", "activate": "accepted", "complete": "activated"}
    id = hub.advance_to(before.get(action, "completed"))
    actor = ALICE if action == "close" else BOB
    first = hub.act(action, id, actor)
    head = hub.lab.store.head()
    assert hub.act(action, id, actor) == first
    assert hub.lab.store.head() == head


@proves("ACP-REPEAT")
def test_repeated_action_succeeds_after_later_transitions(hub: AcpHub) -> None:
    id = hub.advance_to("closed")
    head = hub.lab.store.head()
    for action in ("accept", "activate", "complete"):
        reply = hub.act(action, id, BOB)
        assert (reply["success"], reply["status"]) == (True, "closed"), reply
    assert "verification_passed" in hub.act("accept", id, BOB)["metadata"]
    assert "fence" not in hub.act("activate", id, BOB)["metadata"]
    assert hub.lab.store.head() == head
    assert hub.code({"action": "complete", "handoff_id": id, "completion_notes": "x"}, BOB)
    failing = hub.propose(task="t-2", artifacts=[artifact()])
    refused = hub.act("accept", failing, BOB)
    hub.act("close", failing, ALICE)
    assert hub.act("accept", failing, BOB)["error"] == refused["error"]


@proves("ACP-GOES-ON")
def test_recipient_activates_again_after_losing_the_lease_and_completes(hub: AcpHub) -> None:
    id = hub.advance_to("activated")
    hub.lab.clock.advance(21 * 60_000)
    assert hub.code({"action": "complete", "handoff_id": id}, BOB) == "lease_lost"
    activated = hub.act("activate", id, BOB)
    assert (activated["status"], activated["metadata"]["fence"]) == ("activated", 2)
    assert hub.act("complete", id, BOB)["status"] == "completed"


def test_repeated_offer_is_the_same_offer(hub: AcpHub) -> None:
    first = hub.reply(offer(), ALICE)
    head = hub.lab.store.head()
    assert hub.reply(offer(), ALICE) == first
    assert hub.lab.store.head() == head


def test_coordinator_extends_reassigns_and_rejects(hub: AcpHub) -> None:
    id = hub.advance_to("proposed")
    assert hub.act("extend_sla", id, COORDINATOR, by="30m")["success"]
    moved = hub.act("reassign", id, COORDINATOR, to_agent="carol", notes="bob is away")
    assert (moved["status"], hub.handoff(moved["handoff_id"]).recipient) == ("proposed", "carol")
    assert hub.handoff(id).status == "rejected"
    forced = {"reason": "timeout_risk", "detail": "too late"}
    assert hub.act("reject", moved["handoff_id"], COORDINATOR, **forced)["success"]


def test_rejection_stores_its_reason_and_a_new_offer_supersedes_it(hub: AcpHub) -> None:
    id = hub.advance_to("activated")
    rejection = {
        "reason": "capacity_unavailable",
        "detail": "no time",
        "suggested_fix": "ask carol",
    }
    assert hub.act("reject", id, BOB, **rejection)["status"] == "rejected"
    assert (hub.task().status, hub.task().assignee) == ("ready", "alice")
    counter = hub.reply(offer(to="carol", supersedes=id), ALICE)
    assert hub.handoff(counter["handoff_id"]).supersedes == id
    assert hub.act("withdraw", counter["handoff_id"], ALICE, notes="later")["status"] == "rejected"


def test_deadline_argument_sets_due_at(hub: AcpHub) -> None:
    at_noon = offer(deadline="2026-02-10T12:00:00Z", sla={"proposed": "1m", "accepted": "2h"})
    kept = hub.handoff(hub.reply(at_noon, ALICE)["handoff_id"])
    assert kept.due_at == 1_770_724_800_000
    task: Any = kept.package["task"]
    assert task["deadline"] == "2026-02-10T12:00:00Z", "the hash stands for it"
    other = offer(deadline="2026-02-10T12:00:01Z", sla={"proposed": "1m", "accepted": "2h"})
    assert hub.code(at_noon, ALICE) == ""
    assert hub.code(other, ALICE) == "ownership_conflict"
    assert (kept.sla_ms["proposed"], kept.sla_ms["accepted"]) == (60_000, 7_200_000)


def test_different_deadlines_are_refused(hub: AcpHub) -> None:
    within = {**offer()["task"], "deadline": "2026-02-10T12:00:00Z"}
    twice = {**offer(deadline="2026-02-11T12:00:00Z"), "task": within}
    stated = hub.call(twice, ALICE)
    assert isinstance(stated, Rejected)
    assert stated.reply["error"] == {
        "code": "schema_invalid",
        "detail": "deadline: task.deadline is another one, 2026-02-10T12:00:00Z: state it once",
    }
    same = offer(deadline="2026-02-10T13:00:00+01:00", sla={"activated": "2h"})
    assert hub.reply({**same, "task": within}, ALICE)["success"]


def test_unknown_tasks_are_created_only_when_adopting(tmp_path: Path) -> None:
    strict = AcpHub(tmp_path, adopt=False)
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
def test_invalid_arguments_are_refused_with_their_path(hub: AcpHub, which: str) -> None:
    arguments, path = WRONG[which]
    answer = hub.router.call("acp_handoff", arguments, BOB)
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.reply["error"]["code"]) == ("schema_invalid", "schema_invalid")
    assert path in answer.detail


@pytest.mark.parametrize(
    "text",
    [
        b'{"action":"query","action":"accept"}',
        b'{"action":"initiate","to_agent":"b","task":{"a":1,"a":2}}',
        b'{"action":"query","limit":9007199254740993}',
        b"{",
    ],
)
def test_ambiguous_json_is_refused(hub: AcpHub, text: bytes) -> None:
    answer = hub.router.call("acp_handoff", text, ALICE)
    assert isinstance(answer, Rejected)
    assert answer.reply["error"]["code"] == "schema_invalid"


def test_from_agent_must_be_the_caller(hub: AcpHub) -> None:
    assert hub.code(offer(from_agent="alice"), BOB) == "not_authorized"
    assert hub.code(offer(from_agent="alice"), ALICE) == ""


def test_artifacts_cannot_be_accepted_without_an_artifact_store(tmp_path: Path) -> None:
    bare = AcpHub(tmp_path, artifacts=None)
    id = bare.propose(artifacts=[artifact()])
    reply = bare.act("accept", id, BOB)
    assert (reply["status"], reply["error"]["code"]) == ("validating", "conflict_retry")


def test_published_defaults_count_as_absent(hub: AcpHub) -> None:
    offered = hub.reply({**CALL_DEFAULTS, **offer()}, ALICE)
    assert offered["success"], offered
    query = hub.reply({**CALL_DEFAULTS, "action": "query"}, BOB)
    assert [row["handoff_id"] for row in query["handoffs"]] == [offered["handoff_id"]]
    accept = {**CALL_DEFAULTS, "action": "accept", "handoff_id": offered["handoff_id"]}
    assert hub.reply(accept, BOB)["status"] == "accepted"
    other = {
        **CALL_DEFAULTS,
        "action": "activate",
        "handoff_id": offered["handoff_id"],
        "by": "30m",
    }
    assert hub.code(other, BOB) == "schema_invalid"


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        ({"action": "extend_sla", "by": "1x"}, "a number with its unit"),
        ({"action": "reject", "reason": "other", "detail": " "}, "not empty and not blank"),
        ({"action": "approve", "package_hash": "A" * 64}, "lower-case hexadecimal"),
    ],
)
def test_refusal_details_are_plain_sentences(
    hub: AcpHub, arguments: dict[str, Any], phrase: str
) -> None:
    assert phrase in hub.reply({**arguments, "handoff_id": "h"}, HUMAN)["error"]["detail"]


@proves("ACP-TOLD")
def test_offer_reply_has_its_hash_and_due_time(hub: AcpHub) -> None:
    reply = hub.reply(offer(handoff_id="h-1"), ALICE)
    kept = hub.handoff("h-1")
    expected = {"package_hash": kept.package_hash, "due_by": "2026-02-09T14:35:00.000Z"}
    assert reply["metadata"] == expected
    assert hub.reply(offer(handoff_id="h-1"), ALICE) == reply
    longer = hub.act("extend_sla", "h-1", COORDINATOR, by="30m")
    assert longer["metadata"]["due_by"] == "2026-02-09T15:05:00.000Z"
    assert hub.act("extend_sla", "h-1", COORDINATOR, by="30m") == longer
    reassigned = hub.act("reassign", "h-1", COORDINATOR, to_agent="carol")
    new = hub.handoff(reassigned["handoff_id"])
    assert reassigned["metadata"] == {**expected, "package_hash": new.package_hash}


@proves("ACP-CHAIN")
def test_owner_cannot_be_offered_its_own_task(hub: AcpHub) -> None:
    refused = hub.reply(offer(to="alice"), ALICE)["error"]
    assert (refused["kind"], refused["detail"]) == ("cycle", "alice has it now: name somebody else")


@proves("ACP-CAN-ACCEPT")
def test_offer_to_a_recipient_that_cannot_accept_is_warned_about(hub: AcpHub) -> None:
    def warnings(task: str, to: str) -> list[str]:
        reply = hub.reply(offer(to=to, task=task), ALICE)
        assert reply["success"], reply
        return reply["metadata"].get("warnings", [])

    assert warnings("t-1", "nobody") == [], "nobody is registered here, and every name is good"
    for name, role in (("alice", "agent"), ("bob", "agent"), ("obs", "observer")):
        hub.lab.do(HUMAN, RegisterAgent(name, role=cast(Any, role)))
    assert warnings("t-2", "bob") == []
    assert warnings("t-3", "obs") == ["obs is registered as observer, and can accept nothing"]
    (warning,) = warnings("t-4", "nobody")
    assert warning == "nobody is registered under the name 'nobody': it waits until somebody is"
    hub.lab.do(HUMAN, RegisterAgent("cora", role="coordinator"))
    id = hub.propose(task="t-5")
    moved = hub.act("reassign", id, COORDINATOR, to_agent="obs")
    assert moved["metadata"]["warnings"][0].startswith("obs is registered as observer")
