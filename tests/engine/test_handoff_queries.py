"""Queries for handoffs: one, filtered pages, schemas and diagnosis."""

from typing import Any

import pytest
from msgspec import Struct, to_builtins

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    ActivateHandoff,
    ApproveHandoff,
    CompleteHandoff,
    NoteHandoff,
    RejectHandoff,
)
from dragoman.core.task_state import AliasTask, CreateTask
from dragoman.engine.handoff_diagnosis import (
    HandoffDiagnosis,
    diagnose_handoff,
)
from dragoman.engine.queries import handoffs
from dragoman.engine.queries.entries import END_OF_LIST
from dragoman.engine.queries.handoffs import (
    HandoffFilter,
    HandoffPage,
    escalation_recipients,
    find_coordinators,
    find_handoff,
    handoff_held_by,
    handoff_page,
    needed_artifact_hashes,
)
from dragoman.engine.queries.visibility import find_reader, is_member
from dragoman.engine.schemas.handoffs import handoff_detail, handoff_summary
from tests.engine.handoffs import (
    CHECKS,
    COORDINATOR,
    accept,
    activate,
    finish,
    late,
    life,
    make,
    offer,
    package,
    state,
)
from tests.engine.lab import BOB, CAROL, HUMAN, Lab
from tests.requirements import proves

APPROVAL_POLICY = {"classification": "internal", "requires_human_approval": True}


def ids(lab: Lab, **wanted: Any) -> list[str]:
    """List the ids of a page."""
    return [one.id for one in page(lab, **wanted).handoffs]


def page(lab: Lab, **wanted: Any) -> HandoffPage:
    """Query a page of handoffs."""
    found = handoff_page(lab.store, HandoffFilter(**wanted))
    assert isinstance(found, HandoffPage), found
    return found


def three_handoffs(lab: Lab) -> None:
    """Create three handoffs: closed, activated, and one offered in another teamspace."""
    life(lab, "h1", "t1")
    make(lab, "t2")
    offer(lab, "h2", "t2")
    accept(lab, "h2")
    activate(lab, "h2")
    make(lab, "t3")
    offer(lab, "h3", "t3", to="alice", by=CAROL, teamspace="red")


@proves("ACP-COPIES")
def test_artifact_copies_are_needed_by_all_but_rejected_handoffs() -> None:
    lab = Lab()
    for number, id in enumerate(("h1", "h2", "h3")):
        make(lab, f"t{number}")
        offer(lab, id, f"t{number}")
        accept(lab, id, artifacts={"log": f"{number}" * 64})
    activate(lab, "h1")
    finish(lab, "h1")
    lab.do(BOB, RejectHandoff("h2", "other", "not for me"))
    assert needed_artifact_hashes(lab.store) == {"0" * 64, "2" * 64}


@proves("ACP-READ")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["h3", "h2", "h1"]),
        ({"status": "activated"}, ["h2"]),
        ({"status": "closed", "recipient": "bob"}, ["h1"]),
        ({"status": "closed"}, ["h1"]),
        ({"status": "closed", "recipient": "alice"}, []),
        ({"task": "t3"}, ["h3"]),
        ({"task": "bead:x-1"}, ["h2"]),
        ({"task": "nowhere"}, []),
        ({"sender": "alice"}, ["h2", "h1"]),
        ({"recipient": "alice"}, ["h3"]),
        ({"teamspace": "red"}, ["h3"]),
        ({"teamspace": "red", "sender": "alice"}, []),
        ({"limit": 2}, ["h3", "h2"]),
    ],
    ids=str,
)
def test_handoffs_are_filtered_by_their_fields(wanted: dict[str, Any], found: list[str]) -> None:
    lab = Lab()
    three_handoffs(lab)
    lab.do(HUMAN, AliasTask("t2", "bead:x-1"))
    assert ids(lab, **wanted) == found


@proves("ACP-READ")
def test_pages_follow_one_another() -> None:
    lab = Lab()
    three_handoffs(lab)
    seen, before = list[str](), END_OF_LIST
    while True:
        found = page(lab, before=before, limit=1)
        seen += [one.id for one in found.handoffs]
        if found.next is None:
            break
        before = found.next
    assert seen == ["h3", "h2", "h1"]


@proves("ACP-READ")
def test_page_scan_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    three_handoffs(lab)
    monkeypatch.setattr(handoffs, "MAX_SCANNED", 1)
    found = page(lab, recipient="bob", teamspace="red")
    assert found.handoffs == ()
    assert found.next is not None
    monkeypatch.setattr(handoffs, "MAX_SCANNED", 5_000)
    monkeypatch.setattr(handoffs, "MAX_PAGE_BYTES", 1)
    assert len(page(lab).handoffs) == 1


@proves("ACP-READ")
@pytest.mark.parametrize(("id", "code"), [("nothing", "handoff_not_found"), ("a b", "invalid_id")])
def test_unknown_handoff_is_refused(id: str, code: str) -> None:
    found = find_handoff(Lab().store, id)
    assert isinstance(found, Refusal)
    assert found.code == code


@proves("ACP-READ")
@pytest.mark.parametrize("field", ["task", "sender", "recipient", "teamspace"])
def test_invalid_name_is_refused(field: str) -> None:
    wanted: dict[str, Any] = {field: "a\x00b"}
    found = handoff_page(Lab().store, HandoffFilter(**wanted))
    assert isinstance(found, Refusal)
    assert found.code == "invalid_id"


@proves("ACP-READ")
def test_handoff_detail_has_all_recorded_fields() -> None:
    lab = Lab()
    make(lab)
    offer(lab, package=package(policy=APPROVAL_POLICY), reason="shift ends")
    lab.do(HUMAN, ApproveHandoff("h1", note="fine"))
    accept(lab, artifacts={"log": "ab" * 32}, left_out=("notes",))
    activate(lab)
    late(lab)
    lab.do(BOB, NoteHandoff("h1", "note", "slow", {"percent": 40}))
    lab.do(BOB, RejectHandoff("h1", "capacity_unavailable", "too much", "ask carol"))
    shown = handoff_detail(state(lab, "h1"))
    assert (shown.status, shown.reason, shown.handoff_chain) == (
        "rejected",
        "shift ends",
        ("alice",),
    )
    assert (shown.artifacts, shown.artifacts_left_out) == ({"log": "ab" * 32}, ("notes",))
    assert (shown.verification_passed, shown.verification_failed) == (CHECKS, ())
    assert shown.requires_human_approval
    assert shown.approval is not None
    assert (shown.approval.by, shown.approval.approved) == ("hera", True)
    assert shown.rejection is not None
    assert shown.rejection.suggested_fix == "ask carol"
    (escalation,) = shown.escalations
    assert (escalation.sla_configured, escalation.sla_elapsed) == ("24h", "25h")
    assert (escalation.escalated_to, escalation.escalated_at) == ("coordinator", shown.status_since)
    assert shown.notes[-1].data == {"percent": 40}
    assert shown.workq_integration is None
    assert shown.package["context"]["summary"] == "The token is read too late."
    brief = to_builtins(handoff_summary(state(lab, "h1")))
    assert brief.items() <= to_builtins(shown).items()
    assert "package" not in brief


@proves("ACP-READ")
def test_offer_shows_its_acceptance_deadline() -> None:
    lab = Lab()
    make(lab)
    brief = handoff_summary(offer(lab))
    assert (brief.due_by, brief.escalated) == ("2026-02-09T14:35:00.000Z", False)
    assert (brief.resolved_at, brief.initiated_at) == (None, "2026-02-09T14:30:00.000Z")


def diagnosis(lab: Lab, id: str = "h1") -> HandoffDiagnosis:
    """Diagnose a handoff at the lab's time."""
    return diagnose_handoff(lab.store, state(lab, id), lab.clock.now())


def steps(found: HandoffDiagnosis) -> list[tuple[tuple[str, ...], str]]:
    """List actors and action of each step."""
    return [(step.who, step.action) for step in found.steps]


@proves("ACP-DIAGNOSE")
def test_diagnosis_names_the_next_actor_in_each_state() -> None:
    lab = Lab()
    for name in ("alice", "bob"):
        lab.do(HUMAN, RegisterAgent(name))
    make(lab)
    offer(lab)
    found = diagnosis(lab)
    assert found.summary == "bob has to accept or reject it"
    assert found.due_by == "2026-02-09T14:35:00.000Z"
    assert steps(found) == [
        (("bob",), "accept"),
        (("bob",), "reject"),
        (("alice",), "withdraw"),
    ]
    assert found.steps[0].command == "dragoman handoff accept h1 --as bob"
    assert found.findings == ()
    accept(lab)
    assert steps(diagnosis(lab))[0] == (("bob",), "activate")
    activate(lab)
    assert "its lease lasts until 2026-02-09T14:35:00.000Z" in diagnosis(lab).summary
    lab.do(BOB, CompleteHandoff("h1"))
    assert steps(diagnosis(lab)) == [(("alice",), "close")]
    make(lab, "t2")
    life_of_another = offer(lab, "h2", "t2")
    lab.do(BOB, RejectHandoff("h2", "other", "no time"))
    assert "(other: no time)" in diagnosis(lab, "h2").summary
    assert steps(diagnosis(lab, life_of_another.id)) == [(("alice",), "close")]


@proves("ACP-DIAGNOSE")
def test_closed_handoff_has_no_steps() -> None:
    lab = Lab()
    life(lab)
    found = diagnosis(lab)
    assert (found.steps, found.findings, found.late) == ((), (), False)


@proves("ACP-DIAGNOSE")
def test_missing_approval_is_the_next_step() -> None:
    lab = Lab()
    make(lab)
    offer(lab, package=package(policy=APPROVAL_POLICY))
    assert steps(diagnosis(lab))[0] == ((), "approve")
    assert accept(lab).status == "validating"
    found = diagnosis(lab)
    assert found.summary == "a person has to approve this package, then bob has to accept it"
    lab.do(HUMAN, ApproveHandoff("h1"))
    found = diagnosis(lab)
    assert steps(found)[0] == (("bob",), "accept")


@proves("ACP-DIAGNOSE")
def test_failed_check_is_named() -> None:
    lab = Lab()
    make(lab)
    offer(lab)
    accept(lab, waits_for="the disk does not answer")
    assert "the disk does not answer" in diagnosis(lab).summary


@proves("ACP-DIAGNOSE")
def test_overdue_handoff_names_coordinators_and_their_steps() -> None:
    lab = Lab()
    make(lab)
    offer(lab)
    assert diagnosis(lab).findings == (), "nobody is registered here, and every name is good"
    lab.clock.advance(6 * 60_000)
    found = diagnosis(lab)
    assert found.late
    assert steps(found)[3:] == [((), "extend_sla"), ((), "reassign")]
    late(lab, after=0)
    found = diagnosis(lab)
    assert any("nobody is registered under the name bob" in one for one in found.findings)
    assert (found.late, found.due_by) == (True, "2026-02-09T14:35:00.000Z")
    assert any("nobody is registered as coordinator" in one for one in found.findings)
    assert any("was told at" in one for one in found.findings)
    lab.do(HUMAN, RegisterAgent("carl", role="coordinator"))
    by_carl = [(("carl",), action) for action in ("extend_sla", "reassign")]
    assert steps(diagnosis(lab))[3:] == by_carl


@proves("ACP-DIAGNOSE")
def test_expired_lease_of_the_recipient_is_reported() -> None:
    lab = Lab()
    make(lab)
    offer(lab)
    accept(lab)
    activate(lab)
    lab.clock.advance(10 * 60_000)
    found = diagnosis(lab)
    assert "no valid lease" in found.summary
    assert found.steps[0].command == "dragoman handoff activate h1 --as bob"
    assert "complete" not in [step.action for step in found.steps]


@proves("ACP-DIAGNOSE")
def test_problems_of_the_task_are_named() -> None:
    lab = Lab()
    lab.do(
        HUMAN,
        CreateTask("first", id="t0"),
        CreateTask("T", id="t1", ready=True, blocked_by=("t0",)),
    )
    offer(lab)
    accept(lab)
    assert diagnosis(lab).summary == "bob has accepted it, and cannot go on: t1 waits for t0"
    assert steps(diagnosis(lab)) == [(("bob",), "reject"), (("alice",), "withdraw")]


@proves("ACP-TEAMSPACE")
def test_escalation_recipients_are_those_who_may_act() -> None:
    lab = Lab()
    for name in ("carl", "cora"):
        lab.do(HUMAN, RegisterAgent(name, role="coordinator"))
    lab.do(HUMAN, RegisterAgent("hana", role="human"), RegisterAgent("otto", role="orchestrator"))
    assert find_coordinators(lab.store) == ("carl", "cora")
    assert find_coordinators(lab.store, Team(("alice", "cora"))) == ("cora",)
    assert find_coordinators(lab.store, Team(("alice", "cora"), ("carl",))) == ("carl",)
    assert find_coordinators(lab.store, Team(("alice", "bob"))) == ("otto", "hana")
    make(lab)
    offer(lab)
    teams = {"default": Team(("alice",), ("cora",))}
    assert escalation_recipients({}, "boss", lab.store, "h1") == ("carl", "cora")
    assert escalation_recipients(teams, "boss", lab.store, "h1") == ("cora",)
    assert escalation_recipients(teams, "boss", lab.store, "") == ("carl", "cora")
    assert escalation_recipients(teams, "boss", Lab().store, "h1") == ("boss",)
    lab.clock.advance(6 * 60_000)
    found = diagnose_handoff(lab.store, state(lab, "h1"), lab.clock.now(), teams)
    assert steps(found)[-1] == (("cora",), "reassign")


class Team(Struct, frozen=True):
    """Teamspace with members and coordinators."""

    members: tuple[str, ...] = ()
    coordinators: tuple[str, ...] = ()


@proves("ACP-READ")
def test_teamspace_with_members_is_closed_to_others() -> None:
    lab = Lab()
    three_handoffs(lab)
    teams = {"red": Team(("carol", "alice"), ("carl",)), "blue": Team(("carl",))}
    for actor, closed in (
        (BOB, {"red", "blue"}),
        (CAROL, {"blue"}),
        (HUMAN, set[str]()),
        (COORDINATOR, set[str]()),
        (Actor("coordinator", "carol"), {"red", "blue"}),
    ):
        assert find_reader(actor, teams).hidden_teamspaces == closed, actor
    bob = find_reader(BOB, teams)
    assert ids(lab, reader=bob) == ["h2", "h1"]
    assert isinstance(find_handoff(lab.store, "h3", bob), Refusal)
    named = [is_member(teams, "red", name) for name in ("alice", "carl", "bob")]
    assert named == [True, True, False]
    assert is_member(teams, "green", "anybody")


@proves("ACP-OWNER", "RUN-PROMPT")
def test_holder_by_handoff_sees_the_work_package(lab: Lab) -> None:
    make(lab)
    offer(lab)
    assert handoff_held_by(lab.store, lab.task("t1"), "bob") is None, "it is only offered"
    accept(lab)
    lab.do(BOB, ActivateHandoff("h1", work_state_update={"next_step": "write the fix"}))
    task = lab.task("t1")
    assert handoff_held_by(lab.store, task, "alice") is None
    held_handoff = handoff_held_by(lab.store, task, "bob")
    assert held_handoff is not None
    work = held_handoff.work_summary()
    assert list(work) == ["task", "context", "work_state", "work_state_update"]
    assert work["work_state_update"] == {"next_step": "write the fix"}
