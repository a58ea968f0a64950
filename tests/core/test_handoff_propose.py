"""Proposals: required context, package hash, ownership chain, one active handoff."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command, Status
from dragoman.core.errors import Refusal
from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.handoff.state import (
    ActivateHandoff,
    ApproveHandoff,
    HandoffProposed,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.task_state import AdoptTask, Delegation, EditTask
from dragoman.core.timestamps import TIMESTAMP_RANGE
from dragoman.text.canonical import canonical_sha256
from tests.core.handoffs import (
    CAROL,
    DAVE,
    accept,
    activated,
    again,
    at,
    handoff,
    mail_recipients,
    offer,
    offered,
    package,
    unclaimed,
)
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TTL,
    World,
    events_of,
    held,
    task,
    with_fields,
)
from tests.requirements import proves


def refusal_of(world: World, command: Any, actor: Any = ALICE) -> Refusal:
    answer = world.decide(actor, command)
    assert isinstance(answer, Refusal)
    return answer


@proves("ACP-CONTEXT")
def test_id_of_a_handoff_is_not_used_again() -> None:
    world = offered()
    assert world.code(ALICE, offer("carol", package=package(extra=1))) == "already_exists"
    assert world.code(BOB, offer("carol")) == "not_authorized"


@proves("ACP-CONTEXT")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("context.summary", None),
        ("context.summary", "  "),
        ("context.summary", " \u200b\u2060"),
        ("context.summary", 5),
        ("work_state.next_step", ""),
        ("task.success_criteria", None),
        ("task.success_criteria", []),
        ("task.success_criteria", [""]),
        ("task.success_criteria", "all"),
    ],
)
def test_package_without_context_is_refused(path: str, value: object) -> None:
    part, _, field = path.partition(".")
    whole = package()
    whole[part][field] = value
    answer = refusal_of(held(), offer(package=whole))
    assert (answer.code, answer.detail.partition(":")[0]) == ("schema_invalid", path)
    whole[part] = "no object at all"
    assert refusal_of(held(), offer(package=whole)).code == "schema_invalid"


@proves("ACP-CONTEXT")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"id": "../x"}, "invalid_id"),
        ({"recipient": "no one"}, "invalid_id"),
        ({"teamspace": "a/b"}, "invalid_id"),
        ({"thread": "a b"}, "invalid_id"),
        ({"supersedes": "a b"}, "invalid_id"),
        ({"title": "x" * 501}, "invalid_field"),
        ({"reason": "x" * 4_001}, "invalid_field"),
        ({"package": {"deep": 2**53}}, "invalid_field"),
        ({"due_at": TIMESTAMP_RANGE[1] + 1}, "invalid_field"),
        ({"sla_ms": {"closed": 60_000}}, "invalid_field"),
        ({"sla_ms": {"proposed": 1}}, "invalid_field"),
        ({"task": "nothing"}, "task_not_found"),
        ({"supersedes": "nothing"}, "handoff_not_found"),
        ({"stated_hash": "0" * 64}, "hash_mismatch"),
    ],
)
def test_invalid_proposal_is_refused(fields: dict[str, Any], code: str) -> None:
    assert refusal_of(held(), replace(offer(), **fields)).code == code
    assert refusal_of(held(), offer(), OBSERVER).code == "not_authorized"


@proves("ACP-PACKAGE-HASH")
def test_hub_completes_and_hashes_package() -> None:
    world = with_fields(held(), session="s-1")
    sent = package()
    sent["provenance"] = {"origin_session": "made up", "decision_refs": ["d-1"]}
    world.do(ALICE, offer(package=sent, thread="th-1", title="my title"))
    known = handoff(world)
    assert known.package["provenance"] == {
        "origin_session": "s-1",
        "decision_refs": ["d-1"],
        "message_thread_refs": ["th-1"],
        "handoff_chain": ["alice"],
    }
    assert (known.package["handoff_id"], known.package["thread_id"]) == ("H", "th-1")
    assert (known.title, known.reason, known.thread) == ("my title", "requested", "th-1")
    unsealed: dict[str, Any] = {**known.package, "verification": {"schema_version": "1.0.0"}}
    assert known.package_hash == canonical_sha256(unsealed)
    sealed: Any = known.package["verification"]
    assert sealed["package_hash"] == known.package_hash


@proves("ACP-PACKAGE-HASH")
def test_origin_session_of_non_holder_is_set_by_hub() -> None:
    for stated in ({"origin_session": "of somebody else"}, {}):
        sent = package()
        sent["provenance"] = stated
        world = with_fields(unclaimed(), session="of somebody before")
        world.do(ALICE, offer(package=sent))
        provenance: Any = handoff(world).package["provenance"]
        assert provenance["origin_session"] == "agent:alice"


@proves("ACP-PACKAGE-HASH")
def test_stated_hash_may_be_of_sent_or_completed_package() -> None:
    sent = package()
    stated = compute_package_hash(sent)
    sent["verification"]["package_hash"] = stated
    world = offered(package=sent, stated_hash=stated)
    known = handoff(world)
    filled: dict[str, Any] = {**known.package}
    assert world.code(ALICE, offer(package=filled, stated_hash=known.package_hash)) == ""
    changed = package()
    changed["context"]["summary"] = "another"
    assert held().code(ALICE, offer(package=changed, stated_hash=stated)) == "hash_mismatch"


@proves("ACP-PACKAGE-HASH")
def test_package_without_canonical_form_has_no_hash() -> None:
    with pytest.raises(ValueError, match=r"\d"):
        canonical_sha256({"n": 2**60})


@proves("ACP-ONE-ACTIVE")
def test_second_handoff_is_refused_while_one_is_active() -> None:
    world = offered()
    answer = refusal_of(world, offer("carol", "H2"))
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    assert "H" in answer.detail
    world.do(ALICE, WithdrawHandoff("H"))
    again(world, ALICE, offer("carol", "H2"), "cause-2")


@proves("ACP-ONE-ACTIVE")
def test_only_owner_may_propose_handoff() -> None:
    answer = refusal_of(held(), offer("carol"), BOB)
    assert (answer.code, answer.kind) == ("ownership_conflict", "not_owner")
    world = World(task("T", "cancelled"))
    assert refusal_of(world, offer()).code == "invalid_transition"


@proves("ACP-OWNER")
def test_proposal_makes_sender_owner_of_unowned_task() -> None:
    world = World()
    world.do(ALICE, AdoptTask("acp", "T", ready=True))
    world.do(ALICE, offer())
    found = world.tasks["T"]
    assert (found.assignee, found.reserved_for, found.status) == ("alice", "alice", "ready")
    assert world.leases == {}
    assert handoff(world).chain == ("alice",)


@proves("ACP-OWNER")
def test_known_owner_is_not_recorded_again() -> None:
    world = with_fields(unclaimed(), assignee="alice", reserved_for="alice")
    names = [type(event).__name__ for event in events_of(world.do(ALICE, offer()))]
    assert names == ["HandoffProposed", "TaskHandedOver", "MailPosted"]


@proves("ACP-OWNER")
def test_active_handoff_keeps_task_for_its_owner() -> None:
    world = with_fields(unclaimed(), assignee="alice", reserved_for="alice")
    world.do(ALICE, offer())
    assert world.code(CAROL, ClaimTask("T", "carol")) == "reserved_for_other"
    assert world.code(BOB, ClaimTask("T", "bob")) == "reserved_for_other"
    answer = refusal_of(world, EditTask("T", assignee="carol"), ORCHESTRATOR)
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    assert world.code(ORCHESTRATOR, EditTask("T", title="better")) == ""
    world.do(ALICE, ClaimTask("T", "alice"))


@proves("ACP-CHAIN")
def test_former_owner_cannot_be_recipient() -> None:
    assert refusal_of(held(), offer("alice")).kind == "cycle"
    world = activated()
    assert world.tasks["T"].chain == ("alice", "bob")
    answer = refusal_of(world, offer("alice", "H2", supersedes="H"), BOB)
    assert (answer.code, answer.kind) == ("ownership_conflict", "cycle")
    assert "alice → bob" in answer.detail


@proves("ACP-COUNTER-OFFER")
def test_counter_offer_supersedes_rejected_handoff() -> None:
    world = at("rejected")
    again(world, ALICE, offer("bob", "H2", supersedes="H", reason="better"), "cause-2")
    assert handoff(world).superseded_by == "H2"
    assert (handoff(world).status, handoff(world, "H2").supersedes) == ("rejected", "H")


@proves("ACP-SUPERSEDED-ONCE")
def test_superseded_handoff_keeps_its_successor() -> None:
    world = at("rejected")
    again(world, ALICE, offer("bob", "H2", supersedes="H", reason="better"), "cause-2")
    again(world, ALICE, WithdrawHandoff("H2"), "cause-3")
    answer = refusal_of(world, offer("carol", "H3", supersedes="H"))
    assert answer.code == "invalid_field"
    assert answer.detail == "supersedes: H2 has taken the place of H"
    assert handoff(world).superseded_by == "H2"
    again(world, ALICE, offer("carol", "H3", supersedes="H2"), "cause-4")
    assert (handoff(world).superseded_by, handoff(world, "H2").superseded_by) == ("H2", "H3")


@proves("ACP-COUNTER-OFFER")
def test_only_handoff_of_same_task_can_be_superseded() -> None:
    world = at("rejected")
    world.put(task("U", "ready", "alice"))
    other = replace(offer("bob", "H2", supersedes="H"), task="U")
    assert refusal_of(world, other).code == "invalid_field"
    assert refusal_of(held(), offer("bob", "H2", supersedes="H")).code == "handoff_not_found"


@proves("ACP-COUNTER-OFFER")
def test_sender_may_replace_its_offer_before_activation() -> None:
    world = offered()
    assert refusal_of(world, offer("carol", "H2", supersedes="H"), BOB).kind == "not_owner"
    again(world, ALICE, offer("carol", "H2", supersedes="H"), "cause-2")
    assert (handoff(world).status, handoff(world).superseded_by) == ("rejected", "H2")
    assert handoff(world, "H2").status == "proposed"
    activated_world = activated()
    assert refusal_of(activated_world, offer("carol", "H2", supersedes="H")).kind == "not_owner"


@proves("ACP-REPEAT")
def test_repeated_offer_returns_active_handoff() -> None:
    world = offered(id="")
    known = handoff(world, "cause-1")
    decision = again(world, ALICE, offer(id=""), "cause-2")
    assert (decision.events, decision.receipt.stream) == ((), "handoff:cause-1")
    assert decision.receipt.state == "proposed"
    for other in (
        offer("carol", ""),
        offer(id="H2"),
        offer(id="", reason="urgent"),
        offer(id="", package=package(classification="restricted")),
        offer(id="", supersedes="cause-1", reason="urgent"),
        offer(id="", due_at=NOW + 60_000),
        offer(id="", sla_ms={"proposed": 60_000}),
    ):
        world.cause = "cause-3"
        answer = world.decide(ALICE, other)
        assert isinstance(answer, Refusal) or answer.receipt.stream == "handoff:cause-3"
    assert handoff(world, "cause-1") == known


@proves("ACP-REPEAT")
def test_repeated_offer_by_id_returns_ended_handoff() -> None:
    world = at("rejected")
    decision = again(world, ALICE, offer(), "cause-2")
    assert (decision.events, decision.receipt.stream) == ((), "handoff:H")
    assert decision.receipt.state == "rejected"
    assert world.code(ALICE, offer("carol")) == "already_exists"


@proves("ACP-CHAIN")
def test_chain_ends_with_owner_set_by_person() -> None:
    world = with_fields(at("completed"), assignee="alice", reserved_for="alice")
    assert world.tasks["T"].chain == ("alice", "bob")
    again(world, ALICE, offer("carol", "H2"), "cause-2")
    assert handoff(world, "H2").chain == ("alice",)
    assert world.tasks["T"].chain == ("alice",)
    other = with_fields(at("completed"), assignee="dave", reserved_for="dave")
    again(other, DAVE, offer("carol", "H2"), "cause-2")
    assert handoff(other, "H2").chain == ("alice", "bob", "dave")


@proves("ACP-OWNER")
def test_proposal_renews_lease_of_sender() -> None:
    decision = held().do(ALICE, offer(), NOW + TTL - 1)
    assert decision.lease is not None
    assert decision.lease.lease is not None
    assert decision.lease.lease.expires_at == NOW + TTL - 1 + TTL


@proves("ACP-DELEGATED")
def test_task_delegated_to_another_agent_is_not_offered() -> None:
    delegation = Delegation("P", "alice", "carol", NOW + TTL)
    world = with_fields(held(), delegation=delegation)
    answer = refusal_of(world, offer())
    assert (answer.code, answer.kind) == ("ownership_conflict", "not_owner")
    assert "carol" in answer.detail
    for free in (
        with_fields(held(), delegation=replace(delegation, state="rejected")),
        with_fields(held(), delegation=delegation, agents=("carol", "alice")),
        with_fields(held(), delegation=replace(delegation, to_agent="alice")),
    ):
        assert free.code(ALICE, offer()) == ""


@proves("ACP-COUNTER-OFFER")
def test_recipient_of_superseded_handoff_is_notified() -> None:
    world = offered()
    again(world, ALICE, offer("carol", "H2", supersedes="H"), "cause-2")
    assert mail_recipients(world, "system.error") == [("bob",)]
    rejection = handoff(world).rejection
    assert rejection is not None
    assert rejection.detail == "superseded by H2", "its sender has re-delegated nothing"
    assert _error_mail(world)["superseded_by"] == "H2"
    redelegated = activated()
    again(redelegated, BOB, offer("carol", "H2", supersedes="H"), "cause-2")
    assert mail_recipients(redelegated, "system.error") == []
    assert mail_recipients(redelegated, "handoff.complete") == [("alice",)]
    (mail,) = (one for one in redelegated.mails.values() if one.kind == "handoff.complete")
    assert msgspec.json.decode(mail.body) == {
        "handoff_id": "H",
        "package_hash": handoff(redelegated).package_hash,
        "superseded_by": "H2",
        "note": "re-delegated as H2",
    }


@proves("ACP-COORDINATE")
@pytest.mark.parametrize("state", ["proposed", "validating", "accepted", "activated"])
def test_reassignment_offers_same_package_to_another_agent(state: Any) -> None:
    world = at(state)
    decision = again(world, COORDINATOR, ReassignHandoff("H", "carol", "bob is away"), "cause-2")
    old, new = handoff(world), handoff(world, "cause-2")
    assert (old.status, old.superseded_by) == ("rejected", "cause-2")
    assert (new.status, new.supersedes, new.sender) == ("proposed", "H", "alice")
    assert (new.recipient, new.chain, new.thread) == ("carol", ("alice",), old.thread)
    assert {**new.package, "handoff_id": "H", "verification": 0} == {
        **old.package,
        "verification": 0,
    }
    assert new.package_hash == compute_package_hash(new.package) != old.package_hash
    assert (decision.receipt.stream, decision.receipt.state) == ("handoff:cause-2", "proposed")
    found = world.tasks["T"]
    assert (found.assignee, found.chain) == ("alice", ("alice",))
    assert found.status == ("ready" if state == "activated" else "in-progress")
    assert ("T" in world.leases) == (state != "activated")
    assert mail_recipients(world, "handoff.initiate")[-1] == ("carol",)
    assert mail_recipients(world, "system.error") == [("alice", "bob")]
    assert _error_mail(world)["superseded_by"] == "cause-2"


def _error_mail(world: Any) -> Any:
    (mail,) = (one for one in world.mails.values() if one.kind == "system.error")
    return msgspec.json.decode(mail.body)


@proves("ACP-COORDINATE")
@pytest.mark.parametrize(
    ("recipient", "notes", "code"),
    [
        ("alice", "", "ownership_conflict"),
        ("bob", "", "invalid_field"),
        ("no one", "", "invalid_id"),
        ("carol", "x" * 70_000, "invalid_field"),
    ],
)
def test_invalid_reassignment_is_refused(recipient: str, notes: str, code: str) -> None:
    command = ReassignHandoff("H", recipient, notes)
    assert refusal_of(offered(), command, COORDINATOR).code == code


@proves("ACP-OWNER")
def test_initiate_mail_has_only_id_and_hash() -> None:
    world = offered()
    (mail,) = world.mails.values()
    assert (mail.kind, mail.to, mail.sender) == ("handoff.initiate", ("bob",), "alice")
    assert mail.body == f'{{"handoff_id":"H","package_hash":"{handoff(world).package_hash}"}}'
    (event,) = (e for e in events_of(held().do(ALICE, offer())) if isinstance(e, HandoffProposed))
    assert event.teamspace == "default"


AT_REST: tuple[Status, ...] = ("backlog", "blocked", "deadletter", "review")


@proves("ACP-UNOWNED")
@pytest.mark.parametrize("status", AT_REST)
def test_unowned_task_at_rest_is_not_offered_by_agent(status: Status) -> None:
    world = World(task("T", status))
    answer = refusal_of(world, offer())
    assert (answer.code, answer.kind) == ("ownership_conflict", "not_owner")
    assert f"T is {status} and nobody's" in answer.detail
    assert "make it ready, or give it to alice" in answer.detail


@proves("ACP-UNOWNED")
@pytest.mark.parametrize("actor", [HUMAN, ORCHESTRATOR, COORDINATOR])
@pytest.mark.parametrize("status", AT_REST)
def test_unowned_task_at_rest_is_offered_by_privileged_role(status: Status, actor: Actor) -> None:
    world = World(task("T", status))
    world.do(actor, offer())
    assert world.handoffs["H"].sender == actor.name


@proves("ACP-UNOWNED")
@pytest.mark.parametrize("status", ["backlog", "blocked", "review"])
def test_task_at_rest_is_offered_by_its_owner(status: Status) -> None:
    world = World(task("T", status, "alice"))
    world.do(ALICE, offer())
    assert world.tasks["T"].handoff is not None


def ownership_of(world: World) -> tuple[str, str, str]:
    """Status, assignee and reservation of T."""
    found = world.tasks["T"]
    return found.status, found.assignee, found.reserved_for


ENDINGS: dict[str, tuple[Actor, Command]] = {
    "withdrawn": (ALICE, WithdrawHandoff("H")),
    "rejected": (BOB, RejectHandoff("H", "other", "no")),
    "forced": (COORDINATOR, RejectHandoff("H", "other", "no")),
    "denied": (HUMAN, ApproveHandoff("H", approved=False)),
}


@proves("ACP-FREE-AGAIN")
@pytest.mark.parametrize("ending", ENDINGS)
def test_unowned_task_is_unowned_again_after_ended_offer(ending: str) -> None:
    world = offered(unclaimed())
    assert ownership_of(world) == ("ready", "alice", "alice")
    actor, command = ENDINGS[ending]
    again(world, actor, command, "cause-2")
    assert ownership_of(world) == ("ready", "", "")
    world.do(CAROL, ClaimTask("T", "carol"))


@proves("ACP-FREE-AGAIN")
def test_unowned_task_is_unowned_again_after_failed_gate_or_later_offers() -> None:
    world = offered(unclaimed())
    world.do(BOB, accept(world, failed=(("missing_artifact", "a-1"),)))
    assert ownership_of(world) == ("ready", "", "")
    world = offered(unclaimed())
    again(world, ALICE, offer("carol", "H2", supersedes="H"), "cause-2")
    again(world, COORDINATOR, ReassignHandoff("H2", "dave"), "H3")
    assert ownership_of(world) == ("ready", "alice", "alice")
    again(world, ALICE, WithdrawHandoff("H3"), "cause-4")
    assert ownership_of(world) == ("ready", "", "")


@proves("ACP-FREE-AGAIN", "ACP-REJECT")
def test_task_activated_or_claimed_since_offer_stays_with_sender() -> None:
    world = offered(unclaimed())
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    again(world, BOB, RejectHandoff("H", "other", "no"), "cause-2")
    assert ownership_of(world) == ("ready", "alice", "alice")
    world = offered(unclaimed())
    world.do(ALICE, ClaimTask("T", "alice"))
    again(world, ALICE, WithdrawHandoff("H"), "cause-2")
    assert ownership_of(world) == ("in-progress", "alice", "alice")


@proves("ACP-FREE-AGAIN")
def test_task_adopted_for_owner_stays_with_owner() -> None:
    world = World()
    world.do(ALICE, AdoptTask("acp", "T", owner="alice"))
    offered(world)
    again(world, ALICE, WithdrawHandoff("H"), "cause-2")
    assert ownership_of(world) == ("ready", "alice", "alice")
