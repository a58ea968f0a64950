"""Offers: drafts, what a package must have, its hash, its chain, and one at a time."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    ActivateHandoff,
    AdoptTask,
    AnyCommand,
    ApproveHandoff,
    ClaimTask,
    DiscardDraft,
    DraftHandoff,
    EditTask,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import HandoffProposed, Status
from dragoman.core.moments import SPAN
from dragoman.core.states.handoff_package import hash_of, mark_of
from dragoman.core.states.task import Delegation
from dragoman.text.canonical import canonical_sha256
from tests.core.handoffs import (
    CAROL,
    DAVE,
    accept,
    activated,
    again,
    at,
    handoff,
    letters,
    offer,
    offered,
    package,
    unheld,
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
    with_,
)
from tests.requirements import proves


def refused(world: World, command: Any, actor: Any = ALICE) -> Refusal:
    answer = world.ask(actor, command)
    assert isinstance(answer, Refusal)
    return answer


@proves("ACP-DISCARD")
def test_a_draft_is_thrown_away_by_its_sender_only_and_once() -> None:
    world = at("draft")
    assert refused(world, DiscardDraft("H"), BOB).code == "handoff_not_found"
    assert refused(world, DiscardDraft("none")).code == "handoff_not_found"
    assert refused(world, DiscardDraft("H"), OBSERVER).code == "not_authorized"
    done = world.do(ALICE, DiscardDraft("H"))
    assert (done.receipt.state, len(done.events)) == ("discarded", 1)
    assert handoff(world).package == {}
    once_more = again(world, ALICE, DiscardDraft("H"), "cause-2")
    assert (once_more.receipt.state, once_more.events) == ("discarded", ())
    assert refused(world, DiscardDraft("H"), BOB).code == "handoff_not_found"
    assert refused(world, WithdrawHandoff("H")).code == "handoff_not_found"


@proves("ACP-DISCARD")
def test_what_was_offered_is_not_thrown_away() -> None:
    world = offered()
    no = refused(world, DiscardDraft("H"))
    assert (no.code, "withdraw" in no.detail) == ("invalid_transition", True)


@proves("ACP-DISCARD")
def test_its_id_is_its_sender_s_for_another_draft_or_an_offer() -> None:
    world = at("draft")
    world.do(ALICE, DiscardDraft("H"))
    assert refused(world, DraftHandoff({}, "H"), BOB).code == "not_authorized"
    later = NOW + 1_000
    begun = world.do(ALICE, DraftHandoff({}, "H"), later)
    assert len(begun.events) == 1
    assert (handoff(world).recipient, handoff(world).created_at) == ("", later)
    again(world, ALICE, DiscardDraft("H"), "cause-2")
    world.cause = "cause-3"
    world.do(ALICE, offer(), later)
    assert (handoff(world).status, handoff(world).created_at) == ("proposed", later)


@proves("ACP-CONTEXT")
def test_a_draft_is_written_over_by_its_sender_only() -> None:
    world = World()
    world.do(ALICE, DraftHandoff({"context": {}}, recipient="bob"))
    id = "cause-1"
    assert (handoff(world, id).status, handoff(world, id).recipient) == ("draft", "bob")
    again(world, ALICE, DraftHandoff({"context": {"summary": "x"}}, id), "cause-2", NOW + 5)
    assert handoff(world, id).package == {"context": {"summary": "x"}}
    assert handoff(world, id).recipient == "bob"
    assert (handoff(world, id).created_at, handoff(world, id).deadline) == (NOW, None)
    assert world.code(BOB, DraftHandoff({}, id)) == "not_authorized"
    assert world.code(OBSERVER, DraftHandoff({})) == "not_authorized"


@proves("ACP-DRAFT-PARTS")
def test_parts_that_are_written_at_once_come_together() -> None:
    world = World()
    world.do(ALICE, DraftHandoff({"reason": "r"}, "H", "bob", "red"))
    world.do(ALICE, DraftHandoff({"context": {"summary": "x"}}, "H"))
    world.do(ALICE, DraftHandoff({"work_state": {"next_step": "y"}}, "H", "carol"))
    known = handoff(world)
    assert set(known.package) == {"reason", "context", "work_state"}
    assert (known.recipient, known.teamspace) == ("carol", "red")
    world.do(ALICE, DraftHandoff({}, "H", teamspace="blue"))
    assert handoff(world).teamspace == "blue"
    assert handoff(at("draft")).teamspace == "default"


@proves("ACP-DRAFT-PARTS")
def test_a_draft_that_has_changed_since_it_was_read_is_not_offered() -> None:
    world = at("draft")
    seen = mark_of(handoff(world))
    world.do(ALICE, DraftHandoff({"context": {"summary": "better"}}, "H"))
    answer = refused(world, offer(drafted=seen))
    assert (answer.code, "propose it again" in answer.detail) == ("try_again", True)
    assert world.code(ALICE, offer(drafted=mark_of(handoff(world)))) == ""
    assert held().code(ALICE, offer(drafted=seen)) == ""


@proves("ACP-REPEAT")
def test_the_same_draft_again_adds_nothing() -> None:
    world = at("draft")
    assert events_of(world.do(ALICE, DraftHandoff(package(), "H", "bob"))) == []
    assert events_of(world.do(ALICE, DraftHandoff(package(), "H", "carol"))) != []


@proves("ACP-CONTEXT")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"id": "../x"}, "invalid_id"),
        ({"recipient": "no one"}, "invalid_id"),
        ({"teamspace": "a/b"}, "invalid_id"),
        ({"package": {"deep": 2**53}}, "invalid_field"),
    ],
)
def test_what_a_draft_cannot_hold(fields: dict[str, Any], code: str) -> None:
    assert refused(World(), replace(DraftHandoff({}), **fields)).code == code


@proves("ACP-CONTEXT")
def test_an_offered_package_is_no_draft_any_more() -> None:
    world = offered()
    assert world.code(ALICE, DraftHandoff({}, "H")) == "already_exists"
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
def test_nothing_is_offered_without_its_context(path: str, value: object) -> None:
    part, _, field = path.partition(".")
    whole = package()
    whole[part][field] = value
    answer = refused(held(), offer(package=whole))
    assert (answer.code, answer.detail.partition(":")[0]) == ("schema_invalid", path)
    whole[part] = "no object at all"
    assert refused(held(), offer(package=whole)).code == "schema_invalid"


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
        ({"due_at": SPAN[1] + 1}, "invalid_field"),
        ({"sla_ms": {"closed": 60_000}}, "invalid_field"),
        ({"sla_ms": {"proposed": 1}}, "invalid_field"),
        ({"task": "nothing"}, "task_not_found"),
        ({"supersedes": "nothing"}, "handoff_not_found"),
        ({"stated_hash": "0" * 64}, "hash_mismatch"),
    ],
)
def test_what_cannot_be_offered(fields: dict[str, Any], code: str) -> None:
    assert refused(held(), replace(offer(), **fields)).code == code
    assert refused(held(), offer(), OBSERVER).code == "not_authorized"


@proves("ACP-PACKAGE-HASH")
def test_the_hub_fills_in_what_it_knows_and_seals_the_package() -> None:
    world = with_(held(), session="s-1")
    mine = package()
    mine["provenance"] = {"origin_session": "made up", "decision_refs": ["d-1"]}
    world.do(ALICE, offer(package=mine, thread="th-1", title="my title"))
    known = handoff(world)
    assert known.package["provenance"] == {
        "origin_session": "s-1",
        "decision_refs": ["d-1"],
        "message_thread_refs": ["th-1"],
        "handoff_chain": ["alice"],
    }
    assert (known.package["handoff_id"], known.package["thread_id"]) == ("H", "th-1")
    assert (known.title, known.reason, known.thread) == ("my title", "requested", "th-1")
    bare: dict[str, Any] = {**known.package, "verification": {"schema_version": "1.0.0"}}
    assert known.package_hash == canonical_sha256(bare)
    sealed: Any = known.package["verification"]
    assert sealed["package_hash"] == known.package_hash


@proves("ACP-PACKAGE-HASH")
def test_a_sender_that_holds_nothing_cannot_name_a_session_of_its_own_making() -> None:
    for said in ({"origin_session": "of somebody else"}, {}):
        mine = package()
        mine["provenance"] = said
        world = with_(unheld(), session="of somebody before")
        world.do(ALICE, offer(package=mine))
        provenance: Any = handoff(world).package["provenance"]
        assert provenance["origin_session"] == "agent:alice"


@proves("ACP-PACKAGE-HASH")
def test_a_stated_hash_is_that_of_the_package_as_sent_or_as_sealed() -> None:
    mine = package()
    stated = hash_of(mine)
    mine["verification"]["package_hash"] = stated
    world = offered(package=mine, stated_hash=stated)
    known = handoff(world)
    filled: dict[str, Any] = {**known.package}
    assert world.code(ALICE, offer(package=filled, stated_hash=known.package_hash)) == ""
    changed = package()
    changed["context"]["summary"] = "another"
    assert held().code(ALICE, offer(package=changed, stated_hash=stated)) == "hash_mismatch"


@proves("ACP-PACKAGE-HASH")
def test_what_has_no_canonical_form_has_no_hash() -> None:
    with pytest.raises(ValueError, match=r"\d"):
        canonical_sha256({"n": 2**60})


@proves("ACP-ONE-ACTIVE")
def test_a_second_handoff_of_a_task_is_refused_while_one_is_under_way() -> None:
    world = offered()
    answer = refused(world, offer("carol", "H2"))
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    assert "H" in answer.detail
    world.do(ALICE, WithdrawHandoff("H"))
    again(world, ALICE, offer("carol", "H2"), "cause-2")


@proves("ACP-ONE-ACTIVE")
def test_only_its_owner_hands_work_on() -> None:
    answer = refused(held(), offer("carol"), BOB)
    assert (answer.code, answer.kind) == ("ownership_conflict", "not_owner")
    world = World(task("T", "cancelled"))
    assert refused(world, offer()).code == "invalid_transition"


@proves("ACP-OWNER")
def test_what_nobody_has_taken_is_its_senders_by_its_word() -> None:
    world = World()
    world.do(ALICE, AdoptTask("acp", "T", ready=True))
    world.do(ALICE, offer())
    found = world.tasks["T"]
    assert (found.assignee, found.reserved_for, found.status) == ("alice", "alice", "ready")
    assert world.leases == {}
    assert handoff(world).chain == ("alice",)


@proves("ACP-OWNER")
def test_the_owner_is_written_down_only_where_that_is_news() -> None:
    world = with_(unheld(), assignee="alice", reserved_for="alice")
    names = [type(event).__name__ for event in events_of(world.do(ALICE, offer()))]
    assert names == ["HandoffProposed", "TaskHandedOver", "MailPosted"]


@proves("ACP-OWNER")
def test_meanwhile_nobody_else_can_claim_it_and_its_owner_cannot_be_edited_away() -> None:
    world = with_(unheld(), assignee="alice", reserved_for="alice")
    world.do(ALICE, offer())
    assert world.code(CAROL, ClaimTask("T", "carol")) == "reserved"
    assert world.code(BOB, ClaimTask("T", "bob")) == "reserved"
    answer = refused(world, EditTask("T", assignee="carol"), ORCHESTRATOR)
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    assert world.code(ORCHESTRATOR, EditTask("T", title="better")) == ""
    world.do(ALICE, ClaimTask("T", "alice"))


@proves("ACP-CHAIN")
def test_nobody_gets_work_again_that_it_has_owned() -> None:
    assert refused(held(), offer("alice")).kind == "cycle"
    world = activated()
    assert world.tasks["T"].chain == ("alice", "bob")
    answer = refused(world, offer("alice", "H2", supersedes="H"), BOB)
    assert (answer.code, answer.kind) == ("ownership_conflict", "cycle")
    assert "alice → bob" in answer.detail


@proves("ACP-COUNTER-OFFER")
def test_a_counter_offer_names_what_it_comes_after() -> None:
    world = at("rejected")
    again(world, ALICE, offer("bob", "H2", supersedes="H", reason="better"), "cause-2")
    assert handoff(world).superseded_by == "H2"
    assert (handoff(world).status, handoff(world, "H2").supersedes) == ("rejected", "H")


@proves("ACP-SUPERSEDED-ONCE")
def test_what_has_taken_its_place_is_named_and_stays_named() -> None:
    world = at("rejected")
    again(world, ALICE, offer("bob", "H2", supersedes="H", reason="better"), "cause-2")
    again(world, ALICE, WithdrawHandoff("H2"), "cause-3")
    answer = refused(world, offer("carol", "H3", supersedes="H"))
    assert answer.code == "invalid_field"
    assert answer.detail == "supersedes: H2 has taken the place of H: name that one"
    assert handoff(world).superseded_by == "H2"
    again(world, ALICE, offer("carol", "H3", supersedes="H2"), "cause-4")
    assert (handoff(world).superseded_by, handoff(world, "H2").superseded_by) == ("H2", "H3")


@proves("ACP-COUNTER-OFFER")
def test_only_a_handoff_of_the_same_task_can_be_superseded() -> None:
    world = at("rejected")
    world.put(task("U", "ready", "alice"))
    other = replace(offer("bob", "H2", supersedes="H"), task="U")
    assert refused(world, other).code == "invalid_field"
    drafted = at("draft")
    assert refused(drafted, offer("bob", "H2", supersedes="H")).code == "handoff_not_found"


@proves("ACP-COUNTER-OFFER")
def test_a_sender_may_offer_anew_before_the_work_begins_and_nobody_else() -> None:
    world = offered()
    assert refused(world, offer("carol", "H2", supersedes="H"), BOB).kind == "not_owner"
    again(world, ALICE, offer("carol", "H2", supersedes="H"), "cause-2")
    assert (handoff(world).status, handoff(world).superseded_by) == ("rejected", "H2")
    assert handoff(world, "H2").status == "proposed"
    begun = activated()
    assert refused(begun, offer("carol", "H2", supersedes="H")).kind == "not_owner"


@proves("ACP-REPEAT")
def test_an_offer_repeated_while_it_is_under_way_is_the_same_one() -> None:
    world = offered(id="")
    known = handoff(world, "cause-1")
    told = again(world, ALICE, offer(id=""), "cause-2")
    assert (told.events, told.receipt.stream) == ((), "handoff:cause-1")
    assert told.receipt.state == "proposed"
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
        answer = world.ask(ALICE, other)
        assert isinstance(answer, Refusal) or answer.receipt.stream == "handoff:cause-3"
    assert handoff(world, "cause-1") == known


@proves("ACP-REPEAT")
def test_an_offer_that_names_its_handoff_is_the_same_one_also_when_that_is_over() -> None:
    world = at("rejected")
    told = again(world, ALICE, offer(), "cause-2")
    assert (told.events, told.receipt.stream) == ((), "handoff:H")
    assert told.receipt.state == "rejected"
    assert world.code(ALICE, offer("carol")) == "already_exists"


@proves("ACP-CHAIN")
def test_what_came_back_by_hand_has_its_owner_last_in_the_chain() -> None:
    world = with_(at("completed"), assignee="alice", reserved_for="alice")
    assert world.tasks["T"].chain == ("alice", "bob")
    again(world, ALICE, offer("carol", "H2"), "cause-2")
    assert handoff(world, "H2").chain == ("alice",)
    assert world.tasks["T"].chain == ("alice",)
    other = with_(at("completed"), assignee="dave", reserved_for="dave")
    again(other, DAVE, offer("carol", "H2"), "cause-2")
    assert handoff(other, "H2").chain == ("alice", "bob", "dave")


@proves("ACP-OWNER")
def test_whoever_offers_what_it_holds_is_alive() -> None:
    told = held().do(ALICE, offer(), NOW + TTL - 1)
    assert told.lease is not None
    assert told.lease.lease is not None
    assert told.lease.lease.expires_at == NOW + TTL - 1 + TTL


@proves("ACP-DELEGATED")
def test_what_is_delegated_to_another_is_not_handed_over() -> None:
    asked = Delegation("P", "alice", "carol", NOW + TTL)
    world = with_(held(), delegation=asked)
    answer = refused(world, offer())
    assert (answer.code, answer.kind) == ("ownership_conflict", "not_owner")
    assert "carol" in answer.detail
    for free in (
        with_(held(), delegation=replace(asked, state="rejected")),
        with_(held(), delegation=asked, agents=("carol", "alice")),
        with_(held(), delegation=replace(asked, to_agent="alice")),
    ):
        assert free.code(ALICE, offer()) == ""


@proves("ACP-COUNTER-OFFER")
def test_whoever_loses_what_another_offer_replaces_is_told() -> None:
    world = offered()
    again(world, ALICE, offer("carol", "H2", supersedes="H"), "cause-2")
    assert letters(world, "system.error") == [("bob",)]
    told = handoff(world).rejection
    assert told is not None
    assert told.detail == "superseded by H2", "its sender has re-delegated nothing"
    assert _told_off(world)["superseded_by"] == "H2"
    passed_on = activated()
    again(passed_on, BOB, offer("carol", "H2", supersedes="H"), "cause-2")
    assert letters(passed_on, "system.error") == []
    assert letters(passed_on, "handoff.complete") == [("alice",)]
    (mail,) = (one for one in passed_on.mails.values() if one.kind == "handoff.complete")
    assert msgspec.json.decode(mail.body) == {
        "handoff_id": "H",
        "package_hash": handoff(passed_on).package_hash,
        "superseded_by": "H2",
        "note": "re-delegated as H2",
    }


@proves("ACP-COORDINATE")
@pytest.mark.parametrize("state", ["proposed", "validating", "accepted", "activated"])
def test_a_coordinator_gives_the_same_package_to_somebody_else(state: Any) -> None:
    world = at(state)
    told = again(world, COORDINATOR, ReassignHandoff("H", "carol", "bob is away"), "cause-2")
    old, new = handoff(world), handoff(world, "cause-2")
    assert (old.status, old.superseded_by) == ("rejected", "cause-2")
    assert (new.status, new.supersedes, new.sender) == ("proposed", "H", "alice")
    assert (new.recipient, new.chain, new.thread) == ("carol", ("alice",), old.thread)
    assert {**new.package, "handoff_id": "H", "verification": 0} == {
        **old.package,
        "verification": 0,
    }
    assert new.package_hash == hash_of(new.package) != old.package_hash
    assert (told.receipt.stream, told.receipt.state) == ("handoff:cause-2", "proposed")
    found = world.tasks["T"]
    assert (found.assignee, found.chain) == ("alice", ("alice",))
    assert found.status == ("ready" if state == "activated" else "in-progress")
    assert ("T" in world.leases) == (state != "activated")
    assert letters(world, "handoff.initiate")[-1] == ("carol",)
    assert letters(world, "system.error") == [("alice", "bob")]
    assert _told_off(world)["superseded_by"] == "cause-2"


def _told_off(world: Any) -> Any:
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
def test_to_whom_it_cannot_be_reassigned(recipient: str, notes: str, code: str) -> None:
    command = ReassignHandoff("H", recipient, notes)
    assert refused(offered(), command, COORDINATOR).code == code


@proves("ACP-OWNER")
def test_the_recipient_is_told_by_id_and_hash_only() -> None:
    world = offered()
    (mail,) = world.mails.values()
    assert (mail.kind, mail.to, mail.sender) == ("handoff.initiate", ("bob",), "alice")
    assert mail.body == f'{{"handoff_id":"H","package_hash":"{handoff(world).package_hash}"}}'
    (event,) = (e for e in events_of(held().do(ALICE, offer())) if isinstance(e, HandoffProposed))
    assert event.teamspace == "default"


AT_REST: tuple[Status, ...] = ("backlog", "blocked", "deadletter", "review")


@proves("ACP-UNOWNED")
@pytest.mark.parametrize("status", AT_REST)
def test_what_nobody_has_and_nobody_could_take_is_offered_by_no_stranger(status: Status) -> None:
    world = World(task("T", status))
    answer = refused(world, offer())
    assert (answer.code, answer.kind) == ("ownership_conflict", "not_owner")
    assert f"T is {status} and nobody's" in answer.detail
    assert "make it ready, or give it to alice" in answer.detail


@proves("ACP-UNOWNED")
@pytest.mark.parametrize("actor", [HUMAN, ORCHESTRATOR, COORDINATOR])
@pytest.mark.parametrize("status", AT_REST)
def test_but_by_whoever_could_make_it_ready(status: Status, actor: Actor) -> None:
    world = World(task("T", status))
    world.do(actor, offer())
    assert world.handoffs["H"].sender == actor.name


@proves("ACP-UNOWNED")
@pytest.mark.parametrize("status", ["backlog", "blocked", "review"])
def test_and_by_its_owner(status: Status) -> None:
    world = World(task("T", status, "alice"))
    world.do(ALICE, offer())
    assert world.tasks["T"].handoff is not None


def fields_of(world: World) -> tuple[str, str, str]:
    """Whose T is."""
    found = world.tasks["T"]
    return found.status, found.assignee, found.reserved_for


OVER: dict[str, tuple[Actor, AnyCommand]] = {
    "withdrawn": (ALICE, WithdrawHandoff("H")),
    "rejected": (BOB, RejectHandoff("H", "other", "no")),
    "forced": (COORDINATOR, RejectHandoff("H", "other", "no")),
    "denied": (HUMAN, ApproveHandoff("H", is_yes=False)),
}


@proves("ACP-FREE-AGAIN")
@pytest.mark.parametrize("how", OVER)
def test_what_nobody_had_is_nobodys_again_when_its_offer_is_over(how: str) -> None:
    world = offered(unheld())
    assert fields_of(world) == ("ready", "alice", "alice")
    actor, command = OVER[how]
    again(world, actor, command, "cause-2")
    assert fields_of(world) == ("ready", "", "")
    world.do(CAROL, ClaimTask("T", "carol"))


@proves("ACP-FREE-AGAIN")
def test_so_it_is_when_the_gate_says_no_and_when_others_were_offered_it_since() -> None:
    world = offered(unheld())
    world.do(BOB, accept(world, failed=(("missing_artifact", "a-1"),)))
    assert fields_of(world) == ("ready", "", "")
    world = offered(unheld())
    again(world, ALICE, offer("carol", "H2", supersedes="H"), "cause-2")
    again(world, COORDINATOR, ReassignHandoff("H2", "dave"), "H3")
    assert fields_of(world) == ("ready", "alice", "alice")
    again(world, ALICE, WithdrawHandoff("H3"), "cause-4")
    assert fields_of(world) == ("ready", "", "")


@proves("ACP-FREE-AGAIN", "ACP-REJECT")
def test_but_what_was_taken_over_or_begun_since_is_its_senders() -> None:
    world = offered(unheld())
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    again(world, BOB, RejectHandoff("H", "other", "no"), "cause-2")
    assert fields_of(world) == ("ready", "alice", "alice")
    world = offered(unheld())
    world.do(ALICE, ClaimTask("T", "alice"))
    again(world, ALICE, WithdrawHandoff("H"), "cause-2")
    assert fields_of(world) == ("in-progress", "alice", "alice")


@proves("ACP-FREE-AGAIN")
def test_what_was_adopted_for_somebody_stays_its_own() -> None:
    world = World()
    world.do(ALICE, AdoptTask("acp", "T", owner="alice"))
    offered(world)
    again(world, ALICE, WithdrawHandoff("H"), "cause-2")
    assert fields_of(world) == ("ready", "alice", "alice")
