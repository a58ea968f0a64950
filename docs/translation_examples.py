"""One message of each type of each dialect, for the table of translations and its tests."""

from typing import Any

from dragoman.protocols.agentmail import compose
from dragoman.protocols.agentmail.wire import MessageType

TASK = "TASK-2026-02-09-057"
_PARENT = "TASK-2026-02-09-001"
_AT = "2026-02-09T14:30:00.000Z"
_HASH = "0" * 64


def _aof(kind: str, **payload: Any) -> dict[str, Any]:
    return {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": TASK,
        "fromAgent": "ada",
        "toAgent": "bob",
        "sentAt": _AT,
        "payload": {"taskId": TASK, **payload},
    }


def _report(outcome: str, **more: Any) -> dict[str, Any]:
    tests = {"total": 3, "passed": 3, "failed": 0}
    fields = {"outcome": outcome, "summaryRef": "outputs/summary.md", "tests": tests}
    return _aof("completion.report", **fields, notes="Login works.", **more)


def _letter(type: MessageType, **fields: Any) -> dict[str, Any]:
    written = compose.render(compose.draft(type, TASK, **fields))
    return {
        "subject": written.subject,
        "body_md": written.body_md,
        "from": "ada",
        "to": ["bob"],
        "timestamp": _AT,
    }


_DONE: dict[str, Any] = {
    "commit_sha": "abc1234",
    "files": ("src/login.py",),
    "tests_pass": True,
    "lint_pass": True,
    "build_pass": True,
    "summary": "Login works.",
}


def _acp(type: str, **payload: Any) -> dict[str, Any]:
    return {"type": type, "from": "ada", "to": ["bob"], "task_id": TASK, "payload": payload}


def _event(number: int, **payload: Any) -> dict[str, Any]:
    return {
        "event_id": f"00000000-0000-4000-8000-{number:012}",
        "session_id": "s-1",
        "payload": payload,
    }


_REQUEST = {"intent_id": TASK, "agent_id": "bob"}
_OWN = {"intent_id": TASK, "agent_id": "ada"}
_IDS = {"handoff_id": "h-1", "package_hash": _HASH}

EXAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "aof": {
        "handoff.request": _aof(
            "handoff.request",
            parentTaskId=_PARENT,
            fromAgent="ada",
            toAgent="bob",
            dueBy=_AT,
            acceptanceCriteria=["A wrong code is refused"],
            expectedOutputs=["outputs/summary.md"],
        ),
        "handoff.accepted": _aof("handoff.accepted", accepted=True),
        "handoff.rejected": _aof("handoff.rejected", accepted=False, reason="no time"),
        "status.update": _aof("status.update", agentId="ada", progress="Half is done."),
        "status.update blocked": _aof(
            "status.update", agentId="ada", status="blocked", blockers=["Which mail server?"]
        ),
        "completion.report done": _report("done", deliverables=["src/login.py"]),
        "completion.report needs_review": _report("needs_review"),
        "completion.report partial": _report("partial"),
        "completion.report blocked": _report("blocked", blockers=["no mail server"]),
    },
    "agentmail": {
        "SPAWN_REQUEST": _letter(MessageType.SPAWN_REQUEST, resume=False, orchestrator="mia"),
        "SPAWN_ACK": _letter(MessageType.SPAWN_ACK, status="spawned", session="s-1"),
        "BEAD_ACCEPTED": _letter(MessageType.BEAD_ACCEPTED, title="Login", started_at=_AT),
        "PROGRESS": _letter(
            MessageType.PROGRESS, step="Step 2", status="Half is done.", context_usage=40
        ),
        "HELP_REQUEST": _letter(
            MessageType.HELP_REQUEST,
            issue_type="SPEC_UNCLEAR",
            problem="Mail does not go out.",
            what_tried="Two servers.",
            question="Which mail server?",
        ),
        "HELP_RESPONSE": _letter(MessageType.HELP_RESPONSE, guidance="The one of the test system."),
        "OFFERING_READY": _letter(MessageType.OFFERING_READY, **_DONE),
        "DONE": _letter(MessageType.DONE, **_DONE),
        "FAILED": _letter(
            MessageType.FAILED,
            failure_type="TESTS_FAIL",
            reason="Two are red.",
            internal_attempts=3,
        ),
        "CHECKPOINT": _letter(
            MessageType.CHECKPOINT,
            checkpoint_reason="CONTEXT_HIGH",
            partial_commit_sha="abc1234",
            progress="The form is done.",
            context_usage=85,
            next_steps="Write the mail.",
        ),
        "other": {"subject": "Hello", "body_md": f"Bead: {TASK}\n\nGood morning.", "from": "ada"},
    },
    "acp": {
        "initiate": {
            "action": "initiate",
            "to_agent": "bob",
            "task": {
                "task_id": TASK,
                "title": "Login",
                "objective": "People can log in",
                "success_criteria": ["all tests pass"],
                "priority": "high",
            },
            "context": {"summary": "The form is done."},
            "work_state": {"status": "in_progress", "next_step": "Write the mail."},
        },
        "accept": {"action": "accept", "handoff_id": "h-1"},
        "reject": {
            "action": "reject",
            "handoff_id": "h-1",
            "reason": "capacity_unavailable",
            "detail": "no time",
        },
        "complete": {"action": "complete", "handoff_id": "h-1", "completion_notes": "Login works."},
        "withdraw": {"action": "withdraw", "handoff_id": "h-1", "notes": "not needed"},
        "handoff.initiate": _acp("handoff.initiate", **_IDS),
        "handoff.accept": _acp("handoff.accept", **_IDS),
        "handoff.reject": _acp("handoff.reject", **_IDS),
        "handoff.complete": _acp("handoff.complete", **_IDS),
        "status.update": _acp("status.update", text="Half is done."),
        "status.blocked": _acp("status.blocked", blocking_issue="Which mail server?"),
        "status.complete": _acp("status.complete", text="Login works."),
        "knowledge.push": _acp("knowledge.push", text="The test system has mail."),
        "knowledge.query": _acp("knowledge.query", text="Which mail server?"),
        "knowledge.response": _acp("knowledge.response", text="The one of the test system."),
        "system.ack": _acp("system.ack", text="taken"),
        "system.error": _acp("system.error", text="no disk"),
    },
    "ccos": {
        "TaskRequest": {**_REQUEST, "goal": "Let people log in", "params": {"mail": True}},
        "TaskUpdate": {**_OWN, "progress": 50, "message": "Half is done."},
        "TaskResult success": {**_OWN, "success": True, "output": {"pages": 3}},
        "TaskResult failure": {**_OWN, "success": False, "error": "no mail server"},
        "TaskResult refusal": {
            **_OWN,
            "success": False,
            "error": "no time",
            "meta": {"kind": "rejected"},
        },
        "notice": {**_REQUEST, "goal": "Which mail server?", "meta": {"kind": "help_asked"}},
    },
    "saop": {
        "turn": {
            "turn_index": 0,
            "agent_id": "developer",
            "role": "developer",
            "content": {
                "thought": "I look at the test.",
                "action": "pytest",
                "observation": "two fail",
            },
            "metadata": {
                "version": "1.0.0",
                "task_id": TASK,
                "timestamp": _AT,
                "confidence": 0.8,
                "estimated_complexity": "low",
            },
        },
        "TASK_TRANSITION": _event(
            1,
            type="TASK_TRANSITION",
            task_id=TASK,
            from_state="in-progress",
            to_state="review",
            timestamp=_AT,
        ),
        "THOUGHT_STREAM": _event(
            3,
            type="THOUGHT_STREAM",
            agent_id="developer",
            turn_index=0,
            chunk="I look at the test.",
            is_final=True,
        ),
        "TOOL_LIFECYCLE_INVOKED": _event(
            4,
            type="TOOL_LIFECYCLE_INVOKED",
            call_id="c-1",
            tool="pytest",
            arguments={"path": "tests"},
            timestamp=_AT,
        ),
        "TOOL_LIFECYCLE_COMPLETED": _event(
            5,
            type="TOOL_LIFECYCLE_COMPLETED",
            call_id="c-1",
            tool="pytest",
            status="success",
            duration_ms=812,
            timestamp=_AT,
        ),
        "SANDBOX_PULSE": _event(
            6, type="SANDBOX_PULSE", line="2 passed", masked=False, timestamp=_AT
        ),
        "NOTICE": _event(
            2,
            type="NOTICE",
            task_id=TASK,
            kind="help_answered",
            text="The one of the test system.",
            from_agent="mia",
            timestamp=_AT,
        ),
    },
}
"""Dialect -> what a message says -> an example of it."""
