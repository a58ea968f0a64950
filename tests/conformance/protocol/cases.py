"""Accepted calls for every operation of every dialect, in order, and messages of each."""

import json
from typing import Any

from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.testing import Call, Do
from tests.protocols.acp.hub import offer
from tests.protocols.saop.hub import event, thought, turn


def _task(number: int, *, holder: str = "") -> tuple[Do, ...]:
    """Create a task with the AOF id of this number, claimed by the holder if one is named."""
    id = _aof_id(number)
    made = Do("olga", CreateTask("Mend the roof", id=id, ready=True))
    return (made, Do(holder, ClaimTask(id, holder, "s-1"))) if holder else (made,)


def _aof_id(number: int) -> str:
    return f"TASK-2026-02-09-{number:03d}"


def _call(by: str, name: str, **arguments: Any) -> Call:
    return Call(by, name, arguments)


def _aof(by: str, type_: str, task: int, to: str = "dispatcher", **payload: Any) -> Call:
    envelope = {
        "protocol": "aof",
        "version": 1,
        "type": type_,
        "taskId": _aof_id(task),
        "fromAgent": by,
        "toAgent": to,
        "sentAt": "2026-02-09T20:55:00.000Z",
        "payload": payload,
    }
    return Call(by, type_, envelope)


_DONE: dict[str, Any] = {
    "outcome": "done",
    "summaryRef": "outputs/summary.md",
    "tests": {"total": 1, "passed": 1, "failed": 0},
    "notes": "dry",
}


_REPORT: dict[str, Any] = {"deliverables": [], "blockers": [], **_DONE}


def _handoff_request(child: int) -> dict[str, Any]:
    return {
        "taskId": _aof_id(child),
        "parentTaskId": _aof_id(2),
        "fromAgent": "ada",
        "toAgent": "bob",
        "acceptanceCriteria": ["it is dry"],
        "expectedOutputs": ["outputs/roof.md"],
        "contextRefs": [],
        "constraints": [],
        "dueBy": "2026-02-10T20:55:00Z",
    }


CASES: dict[str, tuple[Call | Do, ...]] = {
    "aof": (
        *_task(1, holder="ada"),
        _call("ada", "aof_task_update", taskId=_aof_id(1), progress="half"),
        _call("ada", "aof_task_complete", taskId=_aof_id(1), **_DONE),
        _call("ada", "session_end", sessionId="s-1"),
        *_task(2, holder="ada"),
        *_task(3),
        *_task(4),
        _aof(
            "ada",
            "status.update",
            2,
            taskId=_aof_id(2),
            agentId="ada",
            status="in-progress",
            progress="half",
        ),
        _aof("ada", "handoff.request", 3, "bob", **_handoff_request(3)),
        _aof("bob", "handoff.accepted", 3, "ada", taskId=_aof_id(3), accepted=True),
        _aof("ada", "handoff.request", 4, "bob", **_handoff_request(4)),
        _aof(
            "bob", "handoff.rejected", 4, "ada", taskId=_aof_id(4), accepted=False, reason="no time"
        ),
        _aof("ada", "completion.report", 2, **_REPORT),
        _call("bob", "aof_inbox"),
    ),
    "agentmail": (
        _call("ada", "mail.send", to=["bob"], subject="Lunch", body_md="At noon?", id="m-1"),
        _call("bob", "mail.inbox"),
        _call("bob", "mail.show", id="m-1"),
        _call("bob", "mail.read", id="m-1"),
        _call("bob", "mail.ack", id="m-1"),
        _call("bob", "mail.thread", thread_id="m-1"),
        _call("bob", "mail.search", query="noon"),
        _call("bob", "mail.summary", thread_id="m-1"),
        _call("olga", "wave.start", beads=["ol-1"], parallel=1, wave_id="w-1"),
        _call("ada", "wave.status", wave_id="w-1"),
        _call("ada", "wave.list"),
        _call("ada", "reserve.take", patterns=["src/"]),
        _call("bob", "reserve.list"),
        _call("ada", "reserve.release"),
    ),
    "acp": (
        _call("ada", "acp_handoff", **offer(task="t-1", handoff_id="h-1")),
        _call("ada", "acp_send", to=["bob"], type="status.update", payload={"a": 1}),
        _call("bob", "acp_inbox"),
        _call("bob", "acp_query", thread_id="t-1"),
        _call("ada", "workq.create", item_id="wq-1", title="One"),
        _call("ada", "workq.claim", item_id="wq-1"),
        _call("bob", "workq.get", item_id="wq-1"),
        _call("ada", "workq.release", item_id="wq-1"),
    ),
    "ccos": (
        _call("olga", "ccos.register", agent_id="ada", skills=["translate"]),
        _call("bob", "ccos.agents"),
        _call("bob", "ccos.rank", goal="Translate it"),
        _call("olga", "ccos.delegate", goal="Translate it", intent_id="i-1"),
        _call("ada", "ccos.requests"),
        _call("ada", "ccos.update", intent_id="i-1", agent_id="ada", progress=50),
        _call("ada", "ccos.result", intent_id="i-1", agent_id="ada", success=True, output=1),
        _call("bob", "ccos.intent", intent_id="i-1"),
        _call("bob", "ccos.intents"),
        _call("bob", "ccos.why", intent_id="i-1"),
        _call("olga", "ccos.request", intent_id="i-2", agent_id="ada", goal="Translate it"),
        _call("olga", "ccos.cancel", intent_id="i-2"),
        _call("bob", "ccos.inbox"),
    ),
    "saop": (
        Call("olga", "saop.turn", turn()),
        Call("olga", "saop.event", event(1, thought("hm"))),
        _call("ada", "saop.turns", task_id="task-abc-123"),
        _call("ada", "saop.events", task_id="task-abc-123"),
        _call("bob", "saop.inbox"),
    ),
}
"""Dialect -> steps that call each of its operations."""

MESSAGES: dict[str, tuple[str, ...]] = {
    "aof": tuple(
        prefix + json.dumps(_aof("ada", "completion.report", 2, **_REPORT).arguments)
        for prefix in ("", "AOF/1 ")
    ),
    "agentmail": (json.dumps({"from": "ada", "to": ["bob"], "subject": "Hi", "body_md": "Hi."}),),
    "acp": (json.dumps({**offer(), "from_agent": "ada"}),),
    "ccos": (json.dumps({"intent_id": "i-1", "agent_id": "ada", "success": True, "output": 1}),),
    "saop": (json.dumps(turn()), json.dumps(event(1, thought("hm")))),
}
"""Dialect -> valid messages of it."""
