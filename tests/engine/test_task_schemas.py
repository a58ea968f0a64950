"""Resource schemas of tasks and entries, and pages of tasks."""

import json

import pytest
from msgspec import UNSET, Raw

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import CheckpointTask, ClaimTask, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.delegation import RequestDelegation
from dragoman.core.errors import Refused
from dragoman.core.task_state import CreateTask, MoveTask, UpdateTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.tasks import TaskFilter, TaskView, find_task, page_of_tasks
from dragoman.engine.schemas.tasks import (
    encode,
    entry_resource,
    task_detail,
    task_summary,
    withheld_resource,
)
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import ManualClock, SequentialIds
from tests.engine.lab import ALICE, HUMAN, START, TTL
from tests.requirements import proves

pytestmark = proves("ENGINE-SHOWN")


@pytest.fixture
def hub() -> Hub:
    return Hub(Engine(MemoryStore("shown"), ManualClock(START), bytes(32)), SequentialIds())


def _view(hub: Hub, name: str) -> TaskView:
    found = find_task(hub.store, name)
    assert isinstance(found, TaskView)
    return found


def test_minimal_task_has_nulls_and_empty_lists(hub: Hub) -> None:
    hub.submit(HUMAN, CreateTask("One", id="one", body="text"))
    view = _view(hub, "one")
    whole = json.loads(encode(task_detail(view.task, view.lease, START)))
    assert whole.pop("body") == "text"
    assert (whole.pop("answers"), whole.pop("feedback")) == ([], [])
    assert (whole.pop("evidence"), whole["checks"], whole["proven"]) == (None, [], False)
    assert whole == json.loads(encode(task_summary(view.task, view.lease, START)))
    assert whole["lease"] is whole["report"] is whole["delegation"] is whole["notBefore"] is None
    assert whole["checkpoint"] is None
    assert whole["waitsFor"] == []
    assert whole["createdAt"] == "2026-02-09T14:30:00.000Z"


@proves("TASK-OBSTACLE")
@pytest.mark.parametrize(
    ("command", "obstacle"),
    [
        (MoveTask("one", "blocked", "the key is lost"), "the key is lost"),
        (UpdateTask("one", "blocked", blockers=("no key", "no door")), "no key; no door"),
        (ReportOutcome("one", "blocked", "sorry", ("no key", " "), apply=True), "no key"),
    ],
    ids=["moved", "updated", "reported"],
)
def test_obstacle_is_shown_while_the_task_is_blocked(
    hub: Hub, command: Command, obstacle: str
) -> None:
    def shown_obstacle() -> str | None:
        view = _view(hub, "one")
        return task_detail(view.task, view.lease, START).obstacle

    hub.submit(HUMAN, CreateTask("One", id="one", ready=True))
    hub.submit(ALICE, ClaimTask("one", "alice", "s1", TTL))
    assert shown_obstacle() is None
    hub.submit(HUMAN if isinstance(command, MoveTask) else ALICE, command)
    assert shown_obstacle() == obstacle
    hub.submit(HUMAN, MoveTask("one", "ready", "found it"))
    assert shown_obstacle() is None


def test_full_task_shows_lease_report_and_delegation(hub: Hub) -> None:
    hub.submit(
        HUMAN,
        CreateTask("Whole", id="whole", ready=True),
        CreateTask("Part", id="part", ready=True),
        RequestDelegation("part", "whole", "alice", START + 1, ("works",)),
    )
    hub.submit(ALICE, ClaimTask("part", "alice", "s1", TTL))
    hub.submit(ALICE, ReportOutcome("part", "failed", "no luck"))
    view = _view(hub, "part")
    shown = json.loads(encode(task_detail(view.task, view.lease, START + TTL)))
    assert shown["lease"] == {
        "agent": "alice",
        "session": "s1",
        "fence": 1,
        "ttlMs": TTL,
        "expiresAt": "2026-02-09T14:35:00.000Z",
        "heartbeats": 2,
        "valid": False,
    }
    assert (shown["report"]["outcome"], shown["report"]["notes"]) == ("failed", "no luck")
    assert (shown["delegation"]["from"], shown["delegation"]["to"]) == ("hera", "alice")
    assert shown["delegation"]["acceptanceCriteria"] == ["works"]
    hub.submit(ALICE, ReportOutcome("part", "failed", apply=True))
    view = _view(hub, "part")
    summary = task_summary(view.task, view.lease, START)
    assert summary.not_before is not None
    assert (summary.waits_for, summary.delegation_depth) == ((), 1)
    assert summary.last_transition_at == summary.updated_at


def test_entry_shows_its_original_text_if_it_has_one(hub: Hub) -> None:
    hub.submit(HUMAN, CreateTask("One", id="one"), original_text=Raw(b'{"a":1}'))
    hub.submit(HUMAN, MoveTask("one", "ready"))
    first, second = (json.loads(encode(entry_resource(entry))) for entry in all_entries(hub.store))
    assert list(first)[-3:] == ["body", "originalText", "hash"]
    assert (first["originalText"], first["body"]["title"], first["via"]) == ({"a": 1}, "One", None)
    assert "originalText" not in second
    assert second["type"] == "task.transitioned"


def test_page_is_filled_past_unwanted_tasks(hub: Hub) -> None:
    for number in range(12):
        hub.submit(HUMAN, CreateTask(f"{number}", id=f"t{number}", ready=True))
        if number % 3:
            hub.submit(HUMAN, CreateTask("x", id=f"b{number}"))
            hub.submit(HUMAN, MoveTask(f"t{number}", "blocked"))
    filters = TaskFilter(status="ready", is_claimable=True, limit=2)
    page = page_of_tasks(hub.store, filters, START)
    assert [view.task.id for view in page.tasks] == ["t9", "t6"]
    assert page.next is not None
    page = page_of_tasks(
        hub.store, TaskFilter("ready", is_claimable=True, before=page.next, limit=2), START
    )
    assert [view.task.id for view in page.tasks] == ["t3", "t0"]
    assert page.next is None


def test_waiting_or_delayed_task_is_not_claimable(hub: Hub) -> None:
    hub.submit(
        HUMAN,
        CreateTask("First", id="first", ready=True),
        CreateTask("Second", id="second", ready=True, blocked_by=("first",)),
    )
    claimable = TaskFilter("ready", is_claimable=True)
    page = page_of_tasks(hub.store, claimable, START)
    assert [view.task.id for view in page.tasks] == ["first"]
    assert not TaskFilter(assignee="alice").matches(_view(hub, "first").task, START)
    assert TaskFilter().matches(_view(hub, "second").task, START)


def test_page_scan_is_bounded(hub: Hub) -> None:
    hub.submit(HUMAN, CreateTask("First", id="first"))
    for number in range(60):
        waits = CreateTask("x", id=f"t{number}", ready=True, blocked_by=("first",))
        hub.submit(HUMAN, waits)
    page = page_of_tasks(hub.store, TaskFilter("ready", is_claimable=True, limit=1), START)
    assert page.tasks == []
    assert page.next is not None, "there may be more"


@proves("MAIL-CHECKPOINT")
def test_checkpoint_of_an_attempt_is_shown_with_its_task(hub: Hub) -> None:
    hub.submit(HUMAN, CreateTask("One", id="one", ready=True))
    hub.submit(ALICE, ClaimTask("one", "alice"))
    hub.submit(ALICE, CheckpointTask("one", "MANUAL", "0a1b2c3", "half", "the rest"))
    view = _view(hub, "one")
    shown = json.loads(encode(task_summary(view.task, view.lease, START)))
    assert shown["checkpoint"] == {
        "by": "alice",
        "at": "2026-02-09T14:30:00.000Z",
        "reason": "MANUAL",
        "commit": "0a1b2c3",
        "description": "half",
        "nextSteps": "the rest",
    }


@proves("EVIDENCE-CHECKS")
def test_evidence_of_a_task_has_every_result(hub: Hub) -> None:
    hub.submit(HUMAN, CreateTask("One", id="one", ready=True, checks=("make test",)))
    hub.submit(HUB_ACTOR, ClaimTask("one", "alice"))
    hub.submit(HUB_ACTOR, ReportOutcome("one", "done", apply=True))
    hub.submit(HUB_ACTOR, RecordChecks("one", 1, (CheckResult("make test", 0, duration_ms=7),)))

    view = _view(hub, "one")
    shown = task_detail(view.task, view.lease, START)
    assert (shown.checks, shown.proven) == (("make test",), True)
    assert shown.evidence is not None
    (result,) = shown.evidence.results
    assert (shown.evidence.attempt, shown.evidence.passed, result.passed) == (1, True, True)
    assert (result.command, result.exit_code, result.problem) == ("make test", 0, None)


@proves("ACP-TEAMSPACE")
def test_withheld_entry_has_its_place_and_hash_and_of_a_refusal_all_but_the_message(
    hub: Hub,
) -> None:
    hub.submit(HUMAN, CreateTask("One", id="one"))
    with pytest.raises(Refused):
        hub.submit(HUMAN, CreateTask("One", id="one"))
    created, refused = hub.store.entries(0, 10)

    hidden = withheld_resource(created)
    assert (hidden.type, hidden.hash, hidden.withheld) == ("withheld", created.hash.hex(), True)
    shown = withheld_resource(refused)
    assert (shown.type, shown.withheld) == ("command.refused", True)
    assert shown.original_text is UNSET
