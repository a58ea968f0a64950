"""Script of the surface tests: tasks, handoffs, letters, waves, reservations, intents, refusals."""

from typing import Any

from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease
from dragoman.core.base import Status
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask, UpdateTask
from tests.conformance.surface.surfaces import Action, Operation, Query, Step
from tests.protocols.acp.hub import offer

AOF_ID = "TASK-2026-02-09-001"
"""AOF id of the first task, at every surface."""


def _create(id: str) -> Action:
    return Action(
        "olga",
        CreateTask("Mend the roof", id=id, ready=True),
        f"task create 'Mend the roof' --id {id} --ready",
        ("/v1/tasks", {"title": "Mend the roof", "id": id, "ready": True}),
    )


def _claim(by: str, task: str = "") -> Action:
    return Action(
        by,
        ClaimTask(task, by, "s-1"),
        f"task claim {task} --session s-1",
        (f"/v1/tasks/{task}/claim" if task else "/v1/work", {"session": "s-1"}),
        ("claim", {"task": task, "session": "s-1"}),
    )


def _heartbeat(by: str, task: str, fence: int) -> Action:
    return Action(
        by,
        RenewLease(task, fence),
        f"task heartbeat {task} --fence {fence}",
        (f"/v1/tasks/{task}/heartbeat", {"fence": fence}),
        ("heartbeat", {"task": task, "fence": fence}),
    )


def _release(by: str, task: str) -> Action:
    return Action(
        by,
        ReleaseTask(task, "needs a ladder"),
        f"task release {task} --reason 'needs a ladder'",
        (f"/v1/tasks/{task}/release", {"reason": "needs a ladder"}),
    )


def _move(by: str, task: str, to: Status) -> Action:
    return Action(
        by, MoveTask(task, to), f"task move {task} {to}", (f"/v1/tasks/{task}/move", {"to": to})
    )


def _call(by: str, name: str, **arguments: Any) -> Operation:
    return Operation(by, name, arguments)


def _handoff(by: str, action: str, id: str = "h-1") -> Operation:
    return _call(by, "acp_handoff", action=action, handoff_id=id)


def _offer(id: str) -> Operation:
    return _call("ada", "acp_handoff", **offer(task="t-2", handoff_id=id))


def _report(by: str) -> Operation:
    tests = {"total": 1, "passed": 1, "failed": 0}
    fields = {"outcome": "done", "summaryRef": "outputs/summary.md", "tests": tests, "notes": "dry"}
    return _call(by, "aof_task_complete", taskId=AOF_ID, **fields)


def _result(by: str) -> Operation:
    return _call(by, "ccos.result", intent_id="i-1", agent_id="ada", success=True, output=1)


def _update(by: str, task: str, to: Status) -> Action:
    return Action(
        by,
        UpdateTask(task, to, notes="finished"),
        f"task move {task} {to} --reason finished",
        (f"/v1/tasks/{task}/update", {"to": to, "notes": "finished"}),
        ("update", {"task": task, "status": to, "progress": "finished"}),
    )


def _note(by: str, task: str) -> Action:
    return Action(
        by,
        NoteTask(task, "still at it"),
        f"task log {task} 'still at it'",
        (f"/v1/tasks/{task}/note", {"text": "still at it"}),
    )


SCRIPT: tuple[tuple[Step, str], ...] = (
    # A task: created, claimed, released, claimed by another agent, reported, reviewed.
    (_create("t-1"), ""),
    (_create("t-1"), "already_exists"),
    (_create("no/t"), "invalid_id"),
    (Query("t-1"), ""),
    (Query("t-7"), "task_not_found"),
    (_claim("ada"), ""),
    (_claim("bob", "t-1"), "already_claimed"),
    (_claim("bob", "t-7"), "task_not_found"),
    (_heartbeat("ada", "t-1", 1), ""),
    (_heartbeat("ada", "t-1", 2), "lease_lost"),
    (_heartbeat("bob", "t-1", 1), "unauthorized_agent"),
    (_release("bob", "t-1"), "unauthorized_agent"),
    (_release("ada", "t-1"), ""),
    (_release("ada", "t-1"), ""),
    (_claim("bob", "t-1"), ""),
    (_release("ada", "t-1"), "lease_lost"),
    (Query("t-1"), ""),
    (_call("bob", "aof_task_update", taskId=AOF_ID, progress="half"), ""),
    (_call("ada", "aof_task_update", taskId=AOF_ID, progress="half"), "lease_lost"),
    (_call("ada", "aof_task_update", taskId="TASK-2026-02-09-999", progress="x"), "task_not_found"),
    (_report("ada"), "lease_lost"),
    (_report("bob"), ""),
    (Operation("bob", "session_end", {"sessionId": "s-1"}, is_tool=False), ""),
    (_move("bob", "t-1", "done"), "not_authorized"),
    (_move("olga", "t-1", "done"), ""),
    (_move("olga", "t-1", "ready"), "invalid_transition"),
    (Query("t-1"), ""),
    (Query("t-1", history=True), ""),
    (Query(), ""),
    # A handoff, from the offer to the closed record.
    (_offer("h-1"), ""),
    (_offer("h-2"), "ownership_conflict"),
    (_handoff("ada", "accept"), "not_authorized"),
    (_handoff("bob", "activate"), "invalid_transition"),
    (_handoff("bob", "accept"), ""),
    (_handoff("bob", "activate"), ""),
    (_handoff("bob", "complete"), ""),
    (_handoff("ada", "close"), ""),
    (_handoff("bob", "query"), ""),
    (_handoff("bob", "accept", "h-7"), "not_found"),
    (Query("t-2"), ""),
    (_call("bob", "acp_inbox"), ""),
    # Letters.
    (_call("ada", "mail.send", to=["bob"], subject="Lunch", body_md="At noon?", id="m-1"), ""),
    (_call("ada", "mail.send", to=[], subject="Lunch", body_md="At noon?"), "invalid_field"),
    (_call("bob", "mail.inbox"), ""),
    (_call("bob", "mail.ack", id="m-1"), ""),
    (_call("bob", "mail.ack", id="m-77"), "mail_not_found"),
    (_call("bob", "mail.show", id="m-1"), ""),
    # A wave, and reserved files.
    (_call("olga", "wave.start", beads=["ol-1", "ol-2"], parallel=1, wave_id="w-1"), ""),
    (_call("ada", "wave.start", beads=["ol-3"], parallel=1), "not_authorized"),
    (_call("ada", "wave.status", wave_id="w-1"), ""),
    (_call("ada", "wave.status", wave_id="w-7"), "wave_not_found"),
    (_call("ada", "reserve.take", patterns=["src/"]), ""),
    (_call("bob", "reserve.take", patterns=["src/a.py"]), "files_reserved"),
    # An intent: delegated, answered and explained.
    (_call("olga", "ccos.register", agent_id="ada", skills=["translate"]), ""),
    (_call("bob", "ccos.rank", goal="Translate it"), ""),
    (_call("olga", "ccos.delegate", goal="Translate it", intent_id="i-1"), ""),
    (_result("bob"), "anomaly"),
    (_result("ada"), ""),
    (_call("ada", "ccos.why", intent_id="i-1"), ""),
    (_call("ada", "ccos.why", intent_id="i-7"), "intent_not_found"),
    (Query(), ""),
)
"""Step -> expected refusal code; empty if it is accepted."""

LATE_WRITES: tuple[tuple[Step, str], ...] = (
    (_create("t-1"), ""),
    (_claim("ada", "t-1"), ""),
    (_move("olga", "t-1", "blocked"), ""),
    # The task is still assigned to ada, who names no fencing token.
    (_update("ada", "t-1", "review"), "lease_lost"),
    (_update("ada", "t-1", "ready"), "lease_lost"),
    (_note("ada", "t-1"), "lease_lost"),
    (_move("ada", "t-1", "ready"), "lease_lost"),
    (_release("ada", "t-1"), "lease_lost"),
    (_report("ada"), "lease_lost"),
    (_call("ada", "aof_task_update", taskId=AOF_ID, progress="half"), "lease_lost"),
    (_call("ada", "aof_task_update", taskId=AOF_ID, status="ready"), "lease_lost"),
    (_move("olga", "t-1", "ready"), ""),
    (_claim("ada", "t-1"), ""),
    (_update("ada", "t-1", "review"), ""),
)
"""Writes of an agent whose work was taken away, and after its next claim -> expected code."""
