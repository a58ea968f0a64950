"""Updates, edits and warnings: updates move the task or are logged."""

from typing import get_args

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_EDIT
from dragoman.core.base import Role, Status
from dragoman.core.errors import Refusal
from dragoman.core.read import Decision, LeaseChange
from dragoman.core.task_state import (
    CreateTask,
    EditTask,
    MoveTask,
    NoteTask,
    TaskEdited,
    TaskProgressed,
    TaskTransitioned,
    TaskWarned,
    UpdateTask,
    WarnTask,
)
from tests.core.expected_transitions import EXPECTED_TRANSITIONS
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TRUSTED_FILE,
    World,
    events_of,
    held,
    lease,
    reclaimed,
    task,
    with_fields,
)
from tests.requirements import proves

STATUSES: tuple[Status, ...] = get_args(Status)
RUNNERS = {"h": HUMAN, "o": ORCHESTRATOR, "s": HUB, "c": COORDINATOR}


def task_in(status: Status, *, review_required: bool = True) -> World:
    """Task in this status whose last agent was alice; only in-progress has a lease."""
    found = task(
        "T", status, "alice", attempts=1, agents=("alice",), review_required=review_required
    )
    return World(found, leases=[("T", lease())] if status == "in-progress" else [])


def expected(from_: Status, to: Status, letter: str) -> str:
    """Expected effect: moves, logs, or the code of the refusal."""
    if to == "in-progress" or to not in EXPECTED_TRANSITIONS[from_]:
        return "logs"
    return "moves" if letter in EXPECTED_TRANSITIONS[from_][to] else "not_authorized"


def effect_of(answer: Decision | Refusal) -> str:
    """Effect of an update: moves, logs, or the code of the refusal."""
    if isinstance(answer, Refusal):
        return answer.code
    (event,) = events_of(answer)
    return "moves" if isinstance(event, TaskTransitioned) else "logs"


@proves("TASK-UPDATE", "ROLE-TABLE", "TASK-CLAIM-ONLY")
@pytest.mark.parametrize("letter", RUNNERS)
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_update_by_privileged_role_for_every_pair_of_statuses(
    from_: Status, to: Status, letter: str
) -> None:
    answer = task_in(from_).decide(RUNNERS[letter], UpdateTask("T", to, notes="why"))
    assert effect_of(answer) == expected(from_, to, letter)


@proves("TASK-UPDATE", "ROLE-TABLE", "TASK-REVIEW")
@pytest.mark.parametrize("review_required", [True, False])
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_update_by_last_agent_for_every_pair_of_statuses(
    from_: Status, to: Status, review_required: bool
) -> None:
    world = task_in(from_, review_required=review_required)
    letter = "H" if from_ == "in-progress" else "a" if review_required else "n"
    answer = world.decide(ALICE, UpdateTask("T", to, notes="why"))
    assert effect_of(answer) == expected(from_, to, letter)


@proves("TASK-UPDATE", "ROLE-HOLDER")
@pytest.mark.parametrize("to", [None, *STATUSES])
@pytest.mark.parametrize("from_", STATUSES)
def test_update_by_stranger_is_refused(from_: Status, to: Status | None) -> None:
    update = UpdateTask("T", to, progress="mine")
    assert task_in(from_).code(BOB, update) == "unauthorized_agent"
    if from_ != "in-progress":
        assert with_fields(task_in(from_), assignee="").code(BOB, update) == "unassigned_task"
        former = World(task("T", from_, "bob", attempts=2, agents=("alice", "bob")))
        assert former.code(ALICE, update) == "lease_lost"
    for actor in (OBSERVER, FILE):
        assert task_in(from_).code(actor, update) == "not_authorized"


@proves("TASK-UPDATE", "LEASE-LOST")
def test_holder_with_lost_lease_neither_moves_nor_logs() -> None:
    for world in (held(expires_at=NOW), reclaimed()):
        assert world.code(ALICE, UpdateTask("T", progress="x")) == "lease_lost"
        assert world.code(ALICE, UpdateTask("T", "blocked")) == "lease_lost"
    over = task_in("blocked")
    assert over.code(ALICE, UpdateTask("T", progress="x", fence=1)) == "lease_lost"


@proves("TASK-UPDATE", "TASK-SAME-STATUS")
@pytest.mark.parametrize("status", STATUSES)
def test_empty_update_with_same_status_is_a_no_op(status: Status) -> None:
    for empty in (UpdateTask("T", status), UpdateTask("T"), UpdateTask("T", blockers=("",))):
        for actor in (ALICE, BOB, HUMAN):
            assert task_in(status).do(actor, empty).events == ()
        assert task_in(status).code(OBSERVER, empty) == "not_authorized"
    old = UpdateTask("T", status, fence=7)
    assert task_in(status).code(ALICE, old) == "lease_lost"


@proves("TASK-UPDATE")
def test_empty_update_to_invalid_status_is_a_no_op_for_holder() -> None:
    assert held().do(ALICE, UpdateTask("T", "done")).events == ()
    assert held().code(BOB, UpdateTask("T", "done")) == "unauthorized_agent"


@proves("TASK-UPDATE")
@pytest.mark.parametrize(
    ("update", "reason", "other_text"),
    [
        (UpdateTask("T", "blocked", "p", "n", ("b1", "b2")), "b1; b2", "n; p"),
        (UpdateTask("T", "blocked", "p", "n"), "n", "p"),
        (UpdateTask("T", "blocked", "p", "", ("",)), "p", ""),
        (UpdateTask("T", "blocked", "p"), "p", ""),
        (UpdateTask("T", "blocked"), "", ""),
    ],
)
def test_transition_reason_is_first_of_blockers_notes_progress(
    update: UpdateTask, reason: str, other_text: str
) -> None:
    world = held()
    decision = world.do(ALICE, update)
    moved = TaskTransitioned("in-progress", "blocked", reason, other_text=other_text)
    assert decision.events == (("task:T", moved),)
    assert (decision.receipt.status, world.leases) == ("blocked", {})
    assert world.tasks["T"].notes == 0, "what moved the task is not logged a second time"


@proves("TASK-UPDATE")
def test_final_update_unblocks_dependents() -> None:
    world = task_in("review")
    world.do(HUMAN, CreateTask("w", "W", ready=True, blocked_by=("T",)))
    decision = world.do(HUMAN, UpdateTask("T", "done", notes="well done"))
    assert [stream for stream, _ in decision.events] == ["task:T", "task:W"]
    assert world.tasks["W"].open_blockers == ()


@proves("TASK-UPDATE", "TASK-LOG")
def test_logged_update_keeps_all_fields_and_sender_time() -> None:
    world = held()
    decision = world.do(ALICE, UpdateTask("T", None, "p", "n", ("b1", "b2"), NOW - 5), NOW + 9)
    assert decision.events == (("task:T", TaskProgressed("p", "n", ("b1", "b2"), NOW - 5)),)
    assert (decision.receipt.status, world.tasks["T"].notes) == ("in-progress", 1)
    assert world.tasks["T"].updated_at == NOW + 9
    world.do(HUMAN, UpdateTask("T", "in-progress", "still at it"))
    assert world.tasks["T"].notes == 2


@proves("TASK-UPDATE", "LIMIT-TEXT")
@pytest.mark.parametrize(
    "command",
    [
        UpdateTask("T", progress="x" * 65_537),
        UpdateTask("T", notes="x" * 65_537),
        UpdateTask("T", blockers=("x" * 4_001,)),
        UpdateTask("T", blockers=("x",) * 1_001),
        UpdateTask("T", blockers=("x" * 4_000,) * 17),
        UpdateTask("T", progress="half \ud800"),
        UpdateTask("T", blockers=("half \ud800",)),
        UpdateTask("T", progress="x", sent_at=-(10**15)),
        UpdateTask("T", progress="x", sent_at=10**15),
        WarnTask("T", ""),
        WarnTask("T", "x" * 501),
        WarnTask("T", "x", "x" * 4_001),
        EditTask("T", ""),
        EditTask("T", " \n"),
        EditTask("T", "x" * 501),
        EditTask("T", body="x" * 200_001),
        EditTask("T", body="half \ud800"),
        EditTask("T", deadline=-1),
        EditTask("T", reason="x" * 1_000_001),
    ],
    ids=range(19),
)
def test_update_warning_and_edit_texts_are_bounded(
    command: UpdateTask | WarnTask | EditTask,
) -> None:
    assert held().code(HUMAN, command) == "invalid_field"


@proves("REFUSAL-CODES")
@pytest.mark.parametrize(
    "command", [UpdateTask("U", "ready"), WarnTask("U", "x"), EditTask("U", "x")]
)
def test_unknown_task_is_not_found(command: UpdateTask | WarnTask | EditTask) -> None:
    assert held().code(HUMAN, command) == "task_not_found"


@proves("TASK-WARN", "ROLE-TABLE")
def test_warning_is_recorded_by_any_writer() -> None:
    for actor in (ALICE, BOB, HUMAN, HUB, ORCHESTRATOR, COORDINATOR):
        world = held()
        decision = world.do(actor, WarnTask("T", "missing_summary", "outputs/summary.md"), NOW + 3)
        assert events_of(decision) == [TaskWarned("missing_summary", "outputs/summary.md")]
        warned = world.tasks["T"]
        assert (warned.warnings, warned.updated_at, warned.status) == (1, NOW + 3, "in-progress")
    for actor in (OBSERVER, FILE):
        assert held().code(actor, WarnTask("T", "x")) == "not_authorized"


FIELDS = {
    "title": EditTask("T", title="new"),
    "body": EditTask("T", body="new"),
    "priority": EditTask("T", priority="critical"),
    "review_required": EditTask("T", review_required=False),
    "assignee": EditTask("T", assignee="bob"),
    "deadline": EditTask("T", deadline=NOW),
    "checks": EditTask("T", checks=("true",)),
}
ALL_FIELDS = set(FIELDS) - {"checks"}
CONTENT_FIELDS = {"title", "body", "priority"}
EDITORS = {
    HUMAN: ALL_FIELDS | {"checks"},
    ORCHESTRATOR: ALL_FIELDS,
    COORDINATOR: ALL_FIELDS,
    HUB: ALL_FIELDS | {"checks"},
    FILE: ALL_FIELDS,
    TRUSTED_FILE: ALL_FIELDS,
    ALICE: CONTENT_FIELDS,
    OBSERVER: set[str](),
}


@proves("TASK-EDIT", "ROLE-TABLE")
@pytest.mark.parametrize("status", [s for s in STATUSES if s not in ("in-progress", "review")])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("actor", EDITORS, ids=lambda actor: f"{actor.label}.{actor.via}")
def test_edit_of_field_depends_on_role_and_status(actor: Actor, field: str, status: Status) -> None:
    code = "not_authorized"
    if field in EDITORS[actor]:
        code = "not_authorized" if _is_review_edit_by_file(actor, field, status) else ""
    assert task_in(status).code(actor, FIELDS[field]) == code


def _is_review_edit_by_file(actor: Actor, field: str, status: Status) -> bool:
    by_file = status in ("backlog", "ready", "blocked")
    return actor == FILE and field == "review_required" and not by_file


@proves("TASK-EDIT", "FILE-PRINCIPAL", "TASK-REVIEW")
@pytest.mark.parametrize("status", ["in-progress", "review"])
def test_edited_file_may_not_disable_running_review(status: Status) -> None:
    off = EditTask("T", review_required=False)
    assert task_in(status).code(FILE, off) == "not_authorized"
    assert task_in(status).code(TRUSTED_FILE, off) == ""
    assert task_in(status).code(FILE, EditTask("T", "new", "new", "low", True)) == ""
    assert task_in("blocked").code(FILE, off) == ""


@proves("FILE-PRINCIPAL")
@pytest.mark.parametrize(("to", "is_named"), [("done", True), ("ready", True), ("blocked", False)])
def test_refused_file_move_names_setting_that_allows_it(to: Status, *, is_named: bool) -> None:
    refusal = task_in("review").decide(FILE, MoveTask("T", to))
    assert isinstance(refusal, Refusal)
    assert ("set files.trust_moves" in refusal.detail) is is_named


@proves("FILE-PRINCIPAL", "ROLE-TABLE")
def test_trusted_file_may_only_decide_reviews_in_addition() -> None:
    assert task_in("review").code(FILE, MoveTask("T", "done")) == "not_authorized"
    assert task_in("review").code(TRUSTED_FILE, MoveTask("T", "done")) == ""
    assert task_in("review").code(TRUSTED_FILE, MoveTask("T", "ready")) == ""
    assert task_in("review").code(TRUSTED_FILE, MoveTask("T", "blocked")) == "not_authorized"
    assert task_in("in-progress").code(TRUSTED_FILE, MoveTask("T", "review")) == "not_authorized"
    by_name_only = Actor("file", "fs", "trusted")
    assert task_in("review").code(by_name_only, MoveTask("T", "done")) == "not_authorized"


@proves("TASK-EDIT", "ROLE-HOLDER", "LEASE-LOST")
def test_agent_edits_only_its_own_task() -> None:
    new = EditTask("T", "new")
    assert held().code(ALICE, new) == ""
    assert held().code(BOB, new) == "unauthorized_agent"
    assert World(task()).code(BOB, new) == "unassigned_task"
    assert reclaimed().code(ALICE, new) == "lease_lost"
    assert held().code(ALICE, EditTask("T", "new", fence=2)) == "lease_lost"


@proves("TASK-EDIT")
def test_edit_changes_only_fields_that_differ() -> None:
    world = task_in("ready")
    before = world.tasks["T"]
    same = EditTask("T", before.title, before.body, before.priority, before.review_required)
    assert world.do(HUMAN, same).events == ()
    assert world.do(HUMAN, EditTask("T")).events == ()
    decision = world.do(HUMAN, EditTask("T", before.title, "a body", "high", False), NOW + 1)
    assert events_of(decision) == [
        TaskEdited(body="a body", priority="high", review_required=False)
    ]
    after = world.tasks["T"]
    assert (after.title, after.body, after.priority) == (before.title, "a body", "high")
    assert (after.review_required, after.assignee) == (False, before.assignee)
    assert (after.updated_at, after.moved_at, after.status) == (NOW + 1, NOW, "ready")
    emptied = world.do(HUMAN, EditTask("T", body=""))
    assert events_of(emptied) == [TaskEdited(body="")]
    assert world.tasks["T"].body == ""


@proves("TASK-EDIT", "TASK-READY")
def test_new_assignee_owns_and_reserves_task() -> None:
    world = World(task())
    world.do(HUMAN, EditTask("T", assignee="bob"))
    assert (world.tasks["T"].reserved_for, world.tasks["T"].assignee) == ("bob", "bob")
    assert world.do(HUMAN, EditTask("T", assignee="bob")).events == ()
    world.do(HUMAN, EditTask("T", assignee=""))
    assert (world.tasks["T"].reserved_for, world.tasks["T"].assignee) == ("", "")
    assert world.code(HUMAN, EditTask("T", assignee="../bob")) == "invalid_id"

    over = task_in("blocked")
    freed = over.do(HUMAN, EditTask("T", assignee=""))
    assert events_of(freed) == [TaskEdited(reserved_for="")]
    assert over.tasks["T"].assignee == "", "the last holder owns it no longer"
    kept = task_in("blocked").do(HUMAN, EditTask("T", assignee="alice"))
    assert events_of(kept) == [TaskEdited(reserved_for="alice")], "hers for good"


@proves("TASK-EDIT", "TASK-CLAIM-ONLY")
@pytest.mark.parametrize("expires_at", [NOW, NOW + 9])
def test_edit_may_not_reassign_held_task(expires_at: int) -> None:
    world = held(expires_at=expires_at)
    for actor in (HUMAN, FILE):
        assert world.code(actor, EditTask("T", "new", assignee="bob")) == "already_claimed"
        assert world.code(actor, EditTask("T", assignee="")) == "already_claimed"
        assert world.do(actor, EditTask("T", assignee="alice")).events == ()


@proves("TASK-ASSIGN")
def test_held_work_is_taken_away_for_another_assignee() -> None:
    world = held()
    assert world.code(ALICE, EditTask("T", assignee="bob", take=True)) == "not_authorized"
    taken = world.do(HUMAN, EditTask("T", assignee="bob", take=True))

    moved, edited = events_of(taken)
    assert moved == TaskTransitioned("in-progress", "ready", "assigned to bob", is_taken=True)
    assert edited == TaskEdited(reserved_for="bob")
    assert taken.lease == LeaseChange("T", None)
    assert (taken.receipt.status, world.tasks["T"].assignee) == ("ready", "bob")
    assert world.code(ALICE, NoteTask("T", "still at it")) == "lease_lost"


@proves("TASK-ASSIGN")
def test_taken_work_may_be_anyones_and_says_why() -> None:
    world = held()
    assert events_of(world.do(HUMAN, EditTask("T", assignee="alice", take=True))) == []
    taken = world.do(HUMAN, EditTask("T", assignee="", take=True, reason="she is ill"))
    told = TaskTransitioned("in-progress", "ready", "she is ill", is_taken=True)
    assert events_of(taken) == [told, TaskEdited(reserved_for="")]
    (_, first), _ = held().do(HUMAN, EditTask("T", assignee="", take=True)).events
    assert first == replace(told, reason="assigned to anyone")


@proves("TASK-ASSIGN")
@pytest.mark.parametrize("actor", [FILE, TRUSTED_FILE])
def test_edited_file_takes_no_work_away(actor: Actor) -> None:
    assert held().code(actor, EditTask("T", assignee="bob", take=True)) == "not_authorized"


@proves("TASK-DEADLINE")
def test_deadline_is_set_and_removed() -> None:
    world = World(task())
    assert events_of(world.do(HUMAN, EditTask("T", deadline=NOW + 9))) == [
        TaskEdited(deadline=NOW + 9)
    ]
    known = world.tasks["T"]
    assert [known.is_overdue(now) for now in (NOW, NOW + 9, NOW + 10)] == [False, False, True]
    assert not replace(known, status="done").is_overdue(NOW + 10)
    assert world.do(HUMAN, EditTask("T", deadline=NOW + 9)).events == ()
    world.do(HUMAN, EditTask("T", deadline=0))
    assert not world.tasks["T"].is_overdue(NOW + 10)


@proves("TASK-DEADLINE")
def test_task_is_created_with_a_deadline() -> None:
    world = World()
    world.do(HUMAN, CreateTask("Mend it", "M", deadline=NOW + 9))
    assert world.tasks["M"].deadline == NOW + 9
    assert world.code(HUMAN, CreateTask("Mend it", deadline=-5)) == "invalid_field"


@proves("TASK-EDIT", "ROLE-TABLE")
def test_edit_table_covers_every_role() -> None:
    assert set(MAY_EDIT) == set(get_args(Role))
    assert {role: set(fields) for role, fields in MAY_EDIT.items()} == {
        actor.role: fields for actor, fields in EDITORS.items()
    }
