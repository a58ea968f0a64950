"""What is said about a task on its way: updates move it or are logged, edits, warnings."""

from typing import get_args

import pytest

from dragoman.core.actors import Actor, Role
from dragoman.core.authority import MAY_EDIT
from dragoman.core.commands import CreateTask, EditTask, MoveTask, UpdateTask, WarnTask
from dragoman.core.errors import Refusal
from dragoman.core.events import Status, TaskEdited, TaskProgressed, TaskTransitioned, TaskWarned
from dragoman.core.reading import Decision
from tests.core.by_hand import BY_HAND
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
    with_,
)
from tests.requirements import proves

STATUSES: tuple[Status, ...] = get_args(Status)
RUNNERS = {"h": HUMAN, "o": ORCHESTRATOR, "s": HUB, "c": COORDINATOR}


def standing(status: Status, *, review_required: bool = True) -> World:
    """A task in this status whose last agent was alice; only in-progress has a lease."""
    stands = task(
        "T", status, "alice", attempts=1, agents=("alice",), review_required=review_required
    )
    return World(stands, leases=[("T", lease())] if status == "in-progress" else [])


def expected(from_: Status, to: Status, letter: str) -> str:
    """By hand: moves, logs, or the code of the refusal."""
    if to == "in-progress" or to not in BY_HAND[from_]:
        return "logs"
    return "moves" if letter in BY_HAND[from_][to] else "not_authorized"


def outcome(answer: Decision | Refusal) -> str:
    """What became of an update."""
    if isinstance(answer, Refusal):
        return answer.code
    (event,) = events_of(answer)
    return "moves" if isinstance(event, TaskTransitioned) else "logs"


@proves("TASK-UPDATE", "ROLE-TABLE", "TASK-CLAIM-ONLY")
@pytest.mark.parametrize("letter", RUNNERS)
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_who_runs_the_show_by_every_pair(from_: Status, to: Status, letter: str) -> None:
    answer = standing(from_).ask(RUNNERS[letter], UpdateTask("T", to, notes="why"))
    assert outcome(answer) == expected(from_, to, letter)


@proves("TASK-UPDATE", "ROLE-TABLE", "TASK-REVIEW")
@pytest.mark.parametrize("review_required", [True, False])
@pytest.mark.parametrize("to", STATUSES)
@pytest.mark.parametrize("from_", STATUSES)
def test_the_agent_of_the_last_attempt_by_every_pair(
    from_: Status, to: Status, review_required: bool
) -> None:
    world = standing(from_, review_required=review_required)
    letter = "H" if from_ == "in-progress" else "a" if review_required else "n"
    answer = world.ask(ALICE, UpdateTask("T", to, notes="why"))
    assert outcome(answer) == expected(from_, to, letter)


@proves("TASK-UPDATE", "ROLE-HOLDER")
@pytest.mark.parametrize("to", [None, *STATUSES])
@pytest.mark.parametrize("from_", STATUSES)
def test_nobody_else_speaks_for_the_work(from_: Status, to: Status | None) -> None:
    said = UpdateTask("T", to, progress="mine")
    assert standing(from_).code(BOB, said) == "unauthorized_agent"
    if from_ != "in-progress":
        assert with_(standing(from_), assignee="").code(BOB, said) == "unassigned_task"
        former = World(task("T", from_, "bob", attempts=2, agents=("alice", "bob")))
        assert former.code(ALICE, said) == "lease_lost"
    for actor in (OBSERVER, FILE):
        assert standing(from_).code(actor, said) == "not_authorized"


@proves("TASK-UPDATE", "LEASE-LOST")
def test_a_holder_whose_lease_is_gone_neither_moves_nor_logs() -> None:
    for world in (held(expires_at=NOW), reclaimed()):
        assert world.code(ALICE, UpdateTask("T", progress="x")) == "lease_lost"
        assert world.code(ALICE, UpdateTask("T", "blocked")) == "lease_lost"
    over = standing("blocked")
    assert over.code(ALICE, UpdateTask("T", progress="x", fence=1)) == "lease_lost"


@proves("TASK-UPDATE", "TASK-SAME-STATUS")
@pytest.mark.parametrize("status", STATUSES)
def test_without_words_the_same_status_is_a_no_op_for_all_who_may_write(status: Status) -> None:
    for silent in (UpdateTask("T", status), UpdateTask("T"), UpdateTask("T", blockers=("",))):
        for actor in (ALICE, BOB, HUMAN):
            assert standing(status).do(actor, silent).events == ()
        assert standing(status).code(OBSERVER, silent) == "not_authorized"
    old = UpdateTask("T", status, fence=7)
    assert standing(status).code(ALICE, old) == "lease_lost"


@proves("TASK-UPDATE")
def test_a_way_that_is_not_there_and_no_words_change_nothing_but_the_sender_is_checked() -> None:
    assert held().do(ALICE, UpdateTask("T", "done")).events == ()
    assert held().code(BOB, UpdateTask("T", "done")) == "unauthorized_agent"


@proves("TASK-UPDATE")
@pytest.mark.parametrize(
    ("words", "reason", "beside"),
    [
        (UpdateTask("T", "blocked", "p", "n", ("b1", "b2")), "b1; b2", "n; p"),
        (UpdateTask("T", "blocked", "p", "n"), "n", "p"),
        (UpdateTask("T", "blocked", "p", "", ("",)), "p", ""),
        (UpdateTask("T", "blocked", "p"), "p", ""),
        (UpdateTask("T", "blocked"), "", ""),
    ],
)
def test_the_reason_is_the_first_of_blockers_notes_progress(
    words: UpdateTask, reason: str, beside: str
) -> None:
    world = held()
    decision = world.do(ALICE, words)
    moved = TaskTransitioned("in-progress", "blocked", reason, beside=beside)
    assert decision.events == (("task:T", moved),)
    assert (decision.receipt.status, world.leases) == ("blocked", {})
    assert world.tasks["T"].notes == 0, "what moved the task is not logged a second time"


@proves("TASK-UPDATE")
def test_an_ending_by_an_update_releases_who_waited() -> None:
    world = standing("review")
    world.do(HUMAN, CreateTask("w", "W", ready=True, blocked_by=("T",)))
    decision = world.do(HUMAN, UpdateTask("T", "done", notes="well done"))
    assert [stream for stream, _ in decision.events] == ["task:T", "task:W"]
    assert world.tasks["W"].open_blockers == ()


@proves("TASK-UPDATE", "TASK-LOG")
def test_a_line_of_the_work_log_keeps_every_word_and_the_senders_time() -> None:
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
    ],
    ids=range(17),
)
def test_every_word_has_a_bound(command: UpdateTask | WarnTask | EditTask) -> None:
    assert held().code(HUMAN, command) == "invalid_field"


@proves("REFUSAL-CODES")
@pytest.mark.parametrize(
    "command", [UpdateTask("U", "ready"), WarnTask("U", "x"), EditTask("U", "x")]
)
def test_an_unknown_task_is_not_found(command: UpdateTask | WarnTask | EditTask) -> None:
    assert held().code(HUMAN, command) == "task_not_found"


@proves("TASK-WARN", "ROLE-TABLE")
def test_a_warning_is_recorded_by_anyone_who_may_write() -> None:
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
}
ALL = set(FIELDS)
WORDING = {"title", "body", "priority"}
EDITORS = {
    HUMAN: ALL,
    ORCHESTRATOR: ALL,
    COORDINATOR: ALL,
    HUB: ALL,
    FILE: ALL,
    TRUSTED_FILE: ALL,
    ALICE: WORDING,
    OBSERVER: set[str](),
}


@proves("TASK-EDIT", "ROLE-TABLE")
@pytest.mark.parametrize("status", [s for s in STATUSES if s not in ("in-progress", "review")])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("actor", EDITORS, ids=lambda actor: f"{actor.label}.{actor.via}")
def test_who_may_change_which_field_by_every_status(
    actor: Actor, field: str, status: Status
) -> None:
    code = "not_authorized"
    if field in EDITORS[actor]:
        code = "not_authorized" if _is_unreviewed_by_file(actor, field, status) else ""
    assert standing(status).code(actor, FIELDS[field]) == code


def _is_unreviewed_by_file(actor: Actor, field: str, status: Status) -> bool:
    by_file = status in ("backlog", "ready", "blocked")
    return actor == FILE and field == "review_required" and not by_file


@proves("TASK-EDIT", "FILE-PRINCIPAL", "TASK-REVIEW")
@pytest.mark.parametrize("status", ["in-progress", "review"])
def test_an_edited_file_switches_no_review_off_that_is_under_way(status: Status) -> None:
    off = EditTask("T", review_required=False)
    assert standing(status).code(FILE, off) == "not_authorized"
    assert standing(status).code(TRUSTED_FILE, off) == ""
    assert standing(status).code(FILE, EditTask("T", "new", "new", "low", True)) == ""
    assert standing("blocked").code(FILE, off) == ""


@proves("FILE-PRINCIPAL")
@pytest.mark.parametrize(("to", "is_named"), [("done", True), ("ready", True), ("blocked", False)])
def test_a_moved_file_names_the_setting_that_would_let_it(to: Status, *, is_named: bool) -> None:
    refusal = standing("review").ask(FILE, MoveTask("T", to))
    assert isinstance(refusal, Refusal)
    assert ("set files.trust_moves" in refusal.detail) is is_named


@proves("FILE-PRINCIPAL", "ROLE-TABLE")
def test_a_trusted_file_judges_a_review_and_does_nothing_else_more() -> None:
    assert standing("review").code(FILE, MoveTask("T", "done")) == "not_authorized"
    assert standing("review").code(TRUSTED_FILE, MoveTask("T", "done")) == ""
    assert standing("review").code(TRUSTED_FILE, MoveTask("T", "ready")) == ""
    assert standing("review").code(TRUSTED_FILE, MoveTask("T", "blocked")) == "not_authorized"
    assert standing("in-progress").code(TRUSTED_FILE, MoveTask("T", "review")) == "not_authorized"
    by_name_only = Actor("file", "fs", "trusted")
    assert standing("review").code(by_name_only, MoveTask("T", "done")) == "not_authorized"


@proves("TASK-EDIT", "ROLE-HOLDER", "LEASE-LOST")
def test_an_agent_edits_only_what_is_its_own() -> None:
    new = EditTask("T", "new")
    assert held().code(ALICE, new) == ""
    assert held().code(BOB, new) == "unauthorized_agent"
    assert World(task()).code(BOB, new) == "unassigned_task"
    assert reclaimed().code(ALICE, new) == "lease_lost"
    assert held().code(ALICE, EditTask("T", "new", fence=2)) == "lease_lost"


@proves("TASK-EDIT")
def test_an_edit_changes_only_what_is_given_and_differs() -> None:
    world = standing("ready")
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
def test_a_new_assignee_is_the_one_who_may_take_it_and_owns_it() -> None:
    world = World(task())
    world.do(HUMAN, EditTask("T", assignee="bob"))
    assert (world.tasks["T"].reserved_for, world.tasks["T"].assignee) == ("bob", "bob")
    assert world.do(HUMAN, EditTask("T", assignee="bob")).events == ()
    world.do(HUMAN, EditTask("T", assignee=""))
    assert (world.tasks["T"].reserved_for, world.tasks["T"].assignee) == ("", "")
    assert world.code(HUMAN, EditTask("T", assignee="../bob")) == "invalid_id"

    over = standing("blocked")
    freed = over.do(HUMAN, EditTask("T", assignee=""))
    assert events_of(freed) == [TaskEdited(reserved_for="")]
    assert over.tasks["T"].assignee == "", "the last holder owns it no longer"
    kept = standing("blocked").do(HUMAN, EditTask("T", assignee="alice"))
    assert events_of(kept) == [TaskEdited(reserved_for="alice")], "hers for good"


@proves("TASK-EDIT", "TASK-CLAIM-ONLY")
@pytest.mark.parametrize("expires_at", [NOW, NOW + 9])
def test_nobody_takes_a_task_away_from_its_holder_by_an_edit(expires_at: int) -> None:
    world = held(expires_at=expires_at)
    for actor in (HUMAN, FILE):
        assert world.code(actor, EditTask("T", "new", assignee="bob")) == "already_claimed"
        assert world.code(actor, EditTask("T", assignee="")) == "already_claimed"
        assert world.do(actor, EditTask("T", assignee="alice")).events == ()


@proves("TASK-EDIT", "ROLE-TABLE")
def test_the_table_of_fields_knows_every_role() -> None:
    assert set(MAY_EDIT) == set(get_args(Role))
    assert {role: set(fields) for role, fields in MAY_EDIT.items()} == {
        actor.role: fields for actor, fields in EDITORS.items()
    }
