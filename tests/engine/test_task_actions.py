"""Table of task actions: arguments to commands, and operations that are called by name."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.core.attempt import ClaimTask, LimitAttempt
from dragoman.core.backoff import Backoff
from dragoman.core.errors import Refused
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.task_actions import (
    TASK_ACTIONS,
    ActionSettings,
    Limit,
    TaskAction,
    action_dialect,
    arguments_shape,
    summarize,
)
from tests.engine.lab import ALICE, BOB, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("TASK-ACTIONS")

SETTINGS = ActionSettings(Backoff())


class ActionWorld:
    """Task T held by alice, and a router for actions."""

    def __init__(self) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _task, _ref: True)
        self.router = Router(self.lab.hub, (), facts, own=action_dialect(SETTINGS))
        self.lab.do(HUMAN, CreateTask("t", "T", ready=True))
        self.lab.do(ALICE, ClaimTask("T", "alice"))

    def act(self, action: str, actor: Any = ALICE, /, **arguments: Any) -> Reply:
        """Call an action on T."""
        return self.router.call(f"task.{action}", {"task": "T"} | arguments, actor)

    def status_after(self, action: str, actor: Any = ALICE, /, **arguments: Any) -> str:
        """Call an action on T and return the status that the reply shows."""
        reply = self.act(action, actor, **arguments)
        assert isinstance(reply, Accepted), reply
        return reply.reply["status"]

    def code_of(self, action: str, actor: Any = ALICE, /, **arguments: Any) -> str:
        """Call an action on T that is refused and return the code."""
        reply = self.act(action, actor, **arguments)
        assert isinstance(reply, Rejected), reply
        return reply.code


@pytest.fixture
def world() -> ActionWorld:
    return ActionWorld()


def test_every_action_has_a_summary_and_a_shape_with_its_task() -> None:
    for name, shape in TASK_ACTIONS.items():
        assert summarize(shape), name
        assert "\n" not in summarize(shape)
        fields = {field.name for field in msgspec.structs.fields(arguments_shape(name))}
        assert {"task", "fence"} <= fields
        assert issubclass(arguments_shape(name), shape)


@proves("USAGE-LIMIT")
def test_usage_limit_ends_the_attempt_until_a_time(world: ActionWorld) -> None:
    assert world.code_of("limit", until="soon") == "invalid_field"
    assert world.status_after("limit", until="2027-01-01T00:00:00Z", reason="429") == "ready"
    (command,) = TASK_ACTIONS["limit"]().commands("T", ALICE, ActionSettings(pauses_limited=False))
    assert command == LimitAttempt("T", pauses=False)


@proves("USAGE-LIMIT")
def test_outcome_limited_is_the_action_limit(world: ActionWorld) -> None:
    for action in ("complete", "report"):
        for wrong in ({"blockers": ["x"]}, {"details": {"cost": 1}}, {"until": "soon"}):
            assert world.code_of(action, outcome="limited", **wrong) == "invalid_field"
        assert world.code_of(action, outcome="done", until="2027-01-01T00:00:00Z") == (
            "invalid_field"
        )
    assert world.code_of("report", outcome="limited", apply=False) == "invalid_field"
    said = {"outcome": "limited", "notes": "429", "until": "2027-01-01T00:00:00Z"}
    assert world.status_after("complete", **said) == "ready"
    task = world.lab.task("T")
    assert (task.failures, task.reported) == (0, None)
    limit = Limit(until="2027-01-01T00:00:00Z", reason="429")
    for action in ("complete", "report"):
        ended = msgspec.convert(said, TASK_ACTIONS[action])
        assert ended.commands("T", ALICE, ActionSettings()) == limit.commands(
            "T", ALICE, ActionSettings()
        )


def test_completed_work_is_reviewed_and_approved(world: ActionWorld) -> None:
    assert world.status_after("complete", notes="dry", details={"cost": 1}) == "review"
    assert world.lab.task("T").reported is not None
    assert world.code_of("approve") == "not_authorized"
    assert world.status_after("approve", HUMAN, reason="good") == "done"
    assert world.code_of("retry", HUMAN) == "invalid_transition"


def test_failed_work_is_tried_again_up_to_its_limit(world: ActionWorld) -> None:
    assert world.status_after("fail", notes="no ladder") == "ready"
    assert world.lab.task("T").failures == 1
    statuses: list[str] = []
    for _ in range(4):
        world.lab.clock.advance(86_400_000)
        world.lab.do(ALICE, ClaimTask("T", "alice"))
        statuses.append(world.status_after("fail", notes="no ladder"))
    assert statuses == ["ready", "ready", "ready", "deadletter"]
    assert world.status_after("retry", HUMAN, reason="a ladder is there") == "ready"
    assert world.lab.task("T").failures == 0


def test_agent_blocks_the_work_that_it_holds(world: ActionWorld) -> None:
    assert world.code_of("block", BOB, blockers=["x"]) == "unauthorized_agent"
    assert world.code_of("block") == "invalid_field"
    assert world.status_after("block", blockers=["no key"], notes="half") == "blocked"
    task = world.lab.task("T")
    assert task.obstacle == "no key"
    assert task.reported is not None
    assert task.reported.outcome == "blocked"
    assert world.status_after("retry", reason="here it is") == "ready"
    assert world.status_after("retry", HUMAN) == "ready"


def test_person_blocks_what_it_does_not_work_on(world: ActionWorld) -> None:
    assert world.status_after("release") == "ready"
    assert world.status_after("block", HUMAN, blockers=["waits for legal"]) == "blocked"
    assert world.lab.task("T").obstacle == "waits for legal"
    assert world.status_after("block", HUMAN, blockers=["legal is away"]) == "blocked"


def test_what_has_ended_is_not_blocked(world: ActionWorld) -> None:
    world.status_after("complete")
    world.status_after("approve", HUMAN)
    assert world.code_of("block", HUMAN, blockers=["x"]) == "invalid_transition"
    assert world.status_after("update", HUMAN, to="blocked", blockers=["x"]) == "done"


def test_question_is_asked_and_answered(world: ActionWorld) -> None:
    assert world.status_after("ask", text="Which paint?") == "in-progress"
    assert world.code_of("answer", text="the red one") == "not_authorized"
    reply = world.act("answer", HUMAN, text="the red one", question="q1")
    assert isinstance(reply, Accepted)
    assert not reply.reply["questions"]
    assert reply.reply["answers"][0]["answer"] == "the red one"
    world.act("ask", text="Which brush?")
    reply = world.act("withdraw", question="q2")
    assert isinstance(reply, Accepted)
    assert not reply.reply["questions"]
    assert world.code_of("answer", HUMAN, text="the big one") == "question_not_found"


def test_reviewed_work_is_sent_back_with_the_reason(world: ActionWorld) -> None:
    world.act("complete")
    assert world.code_of("send-back", HUMAN, reason="") == "invalid_field"
    reply = world.act("send-back", HUMAN, reason="still wet")
    assert isinstance(reply, Accepted)
    shown = reply.reply
    assert (shown["status"], shown["assignee"]) == ("ready", "alice")
    assert [one["text"] for one in shown["feedback"]] == ["still wet"]


def test_retry_takes_nothing_from_its_holder_or_its_reviewer(world: ActionWorld) -> None:
    rejected = world.act("retry", HUMAN)

    assert isinstance(rejected, Rejected)
    assert rejected.code == "invalid_transition"
    assert rejected.detail == (
        "T is in-progress, not deadletter or blocked: `dragoman task move T ready` moves it from "
        "there"
    )
    world.act("complete")
    assert world.code_of("retry", HUMAN) == "invalid_transition"


def test_report_and_move_are_actions_too(world: ActionWorld) -> None:
    assert world.status_after("report", outcome="done", apply=False) == "in-progress"
    assert world.status_after("move", HUMAN, to="ready") == "ready"
    assert world.status_after("note", HUMAN, text="wet") == "ready"
    world.lab.do(HUMAN, CreateTask("u", "U"))
    assert world.status_after("link", HUMAN, blocked_by=["U"], aliases=["bead:b-1"]) == "ready"
    assert world.lab.task("T").open_blockers == ("U",)
    assert world.status_after("update", HUMAN, progress="half") == "ready"


@proves("TASK-REOPEN")
def test_ended_task_is_reopened_as_it_was_before(world: ActionWorld) -> None:
    lab = world.lab
    lab.do(HUMAN, CreateTask("u", "U", ready=True, blocked_by=("T",)))
    world.act("complete")
    assert world.code_of("reopen", HUMAN) == "invalid_transition"
    world.act("approve", HUMAN)
    world.act("note", HUMAN, text="it leaks again")
    assert lab.task("U").open_blockers == ()
    assert world.code_of("reopen", ALICE) == "not_authorized"
    assert world.status_after("reopen", HUMAN, reason="it leaks") == "ready"
    assert lab.task("U").open_blockers == ("T",)
    lab.do(HUMAN, CreateTask("v", "V", ready=True, review_required=False))
    lab.do(BOB, ClaimTask("V", "bob"))
    world.act("complete", BOB, task="V")
    assert world.status_after("reopen", HUMAN, task="V") == "ready"
    lab.do(BOB, ClaimTask("V", "bob"))
    world.act("complete", BOB, task="V", outcome="needs_review")
    lab.do(HUMAN, MoveTask("V", "cancelled"))
    assert world.status_after("reopen", HUMAN, task="V") == "review"


@proves("TASK-ASSIGN")
def test_held_work_is_assigned_only_by_taking_it(world: ActionWorld) -> None:
    rejected = world.act("assign", HUMAN, to="bob")
    assert isinstance(rejected, Rejected)
    assert rejected.code == "already_claimed"
    assert "`dragoman task assign T --take`" in rejected.detail
    assert world.code_of("assign", ALICE, to="alice") == "not_authorized"
    assert world.status_after("assign", HUMAN, to="bob", take=True) == "ready"
    assert world.lab.task("T").reserved_for == "bob"
    assert world.status_after("assign", HUMAN, to="") == "ready"
    assert world.lab.task("T").reserved_for == ""


@proves("TASK-EDIT", "TASK-DEADLINE", "TASK-UNLINK")
def test_task_is_edited_all_or_none(world: ActionWorld) -> None:
    lab = world.lab
    lab.do(HUMAN, CreateTask("u", "U"))
    lab.do(HUMAN, CreateTask("v", "V"))
    world.act("link", HUMAN, blocked_by=["U"])
    edit = {"title": "New", "body": "B", "priority": "high", "deadline": "2026-03-01T00:00:00Z"}
    reply = world.act("edit", HUMAN, **edit, blocked_by=["V"], not_blocked_by=["U"])
    assert isinstance(reply, Accepted)
    shown = reply.reply
    assert (shown["title"], shown["body"], shown["priority"]) == ("New", "B", "high")
    assert (shown["deadline"], shown["overdue"]) == ("2026-03-01T00:00:00.000Z", False)
    assert shown["blockedBy"] == ("V",)
    assert world.code_of("edit", HUMAN, title="Other", blocked_by=["X"]) == "task_not_found"
    assert world.code_of("edit", HUMAN, deadline="tomorrow") == "invalid_field"
    assert lab.task("T").title == "New"
    reply = world.act("edit", HUMAN, deadline=None)
    assert isinstance(reply, Accepted)
    assert reply.reply["deadline"] is None


@pytest.mark.parametrize("action", ["update", "link", "edit"])
def test_action_that_says_nothing_is_refused(world: ActionWorld, action: str) -> None:
    assert world.code_of(action) == "invalid_field"
    with pytest.raises(Refused, match="at least one of"):
        TASK_ACTIONS[action]().commands("T", ALICE, SETTINGS)


def test_refusal_is_recorded_and_arguments_are_not(world: ActionWorld) -> None:
    assert world.code_of("note", text="", extra=1) == "invalid_field"
    assert world.code_of("complete", fence=7) == "lease_lost"
    missing = world.router.call("task.note", {"task": "X", "text": "x"}, ALICE)
    assert isinstance(missing, Rejected)
    assert missing.code == "task_not_found"
    world.act("note", text="wet")
    lines = [json.loads(entry.line) for entry in world.lab.store.entries(0, 99)]
    refused = [line for line in lines if line["event"] == "command.refused"]
    assert len(refused) == 3
    assert not any("original_text" in line for line in lines)


def test_action_is_no_message(world: ActionWorld) -> None:
    assert world.router.send({"task": "T", "text": "wet"}, speaker=ALICE) is None
    unknown = world.router.call("task.fly", {}, ALICE)
    assert isinstance(unknown, Rejected)
    assert "task.approve" in unknown.detail


def test_row_without_commands_is_a_mistake() -> None:
    with pytest.raises(NotImplementedError):
        TaskAction().commands("T", ALICE, SETTINGS)
