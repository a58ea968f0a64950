"""Agent process of the matrix of dialects: it speaks one, over HTTP, and knows nothing of others.

Usage: dialect_agent.py boss|hand DIALECT PLAN. A boss offers each task of its plan and waits until
it is told of what came of it; a hand takes each task that is offered to it, and says how it goes.
Both read their inbox in their own dialect, and print what they have understood: task -> kinds.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

URL, TOKEN = os.environ["DRAGOMAN_URL"], os.environ["DRAGOMAN_TOKEN"]

WAIT_MS = 20_000
"""Longest wait for the next message."""

AT = "2026-02-09T14:30:00Z"

INBOXES = {
    "aof": ("aof/aof_inbox", "messages"),
    "agentmail": ("agentmail/mail.inbox", "messages"),
    "acp": ("acp/acp_inbox", "messages"),
    "ccos": ("ccos/ccos.inbox", "messages"),
    "saop": ("saop/saop.inbox", "messages"),
}
"""Dialect -> the operation that reads its messages, and the field of its reply."""


def post(path: str, body: Mapping[str, Any]) -> Any:
    """Send a JSON object that must be accepted; the answer."""
    request = urllib.request.Request(  # noqa: S310
        f"{URL}/v1/{path}",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
            return json.load(reply)
    except urllib.error.HTTPError as error:
        sys.exit(f"{path} {body}: {error.read().decode()}")


def read_inbox(dialect: str) -> Iterator[dict[str, Any]]:
    """Messages in the dialect, as they come."""
    path, field = INBOXES[dialect]
    after = 0
    while True:
        reply = post(f"{path}?wait={WAIT_MS}", {"after": after})
        if not reply[field]:
            return
        after = reply["cursor"]
        yield from (row.get("message", row) for row in reply[field])


# --- what a message of the own dialect says -----------------------------------------------------


def understand(dialect: str, message: Mapping[str, Any]) -> tuple[str, str]:
    """The task that a message is about, and its kind; empty: it says nothing that matters here."""
    return _UNDERSTAND[dialect](message)


def _understand_aof(message: Mapping[str, Any]) -> tuple[str, str]:
    payload = message["payload"]
    kind = {"handoff.request": "offer"}.get(message["type"], "")
    if message["type"] == "completion.report":
        kind = "failed" if payload["outcome"] == "blocked" else "done"
    elif message["type"] == "status.update":
        kind = "help" if payload.get("status") == "blocked" else "progress"
        kind = "offer" if "kind: offer" in payload.get("notes", "") else kind
    return message["taskId"], kind


def _understand_mail(row: Mapping[str, Any]) -> tuple[str, str]:
    kinds = {"SPAWN_REQUEST": "offer", "PROGRESS": "progress", "HELP_REQUEST": "help"}
    kinds |= {"DONE": "done", "OFFERING_READY": "done", "FAILED": "failed"}
    return row["bead_id"], kinds.get(row["type"], "")


def _understand_acp(message: Mapping[str, Any]) -> tuple[str, str]:
    kinds = {"handoff.initiate": "offer", "status.update": "progress", "status.blocked": "help"}
    kinds |= {"status.complete": "done", "handoff.complete": "done"}
    payload = message["payload"]
    stated = {"failed": "failed", "offer": "offer"}.get(payload.get("kind", ""))
    return message["task_id"], stated or kinds.get(message["type"], "")


def _understand_ccos(message: Mapping[str, Any]) -> tuple[str, str]:
    kind = "offer" if "goal" in message else "progress"
    if "success" in message:
        kind = "done" if message["success"] else "failed"
    stated = {"help_asked": "help"}.get(message.get("meta", {}).get("kind", ""), "")
    is_other = "goal" in message and message.get("meta", {}).get("kind") not in (None, "offer")
    return message["intent_id"], stated or ("" if is_other else kind)


def _understand_saop(message: Mapping[str, Any]) -> tuple[str, str]:
    if "turn_index" in message:
        return message["metadata"]["task_id"], "progress"
    kinds = {"offer": "offer", "progress": "progress", "help_asked": "help"}
    kinds |= {"result": "done", "failed": "failed"}
    payload = message["payload"]
    return payload["task_id"], kinds.get(payload["kind"], "")


_UNDERSTAND = {
    "aof": _understand_aof,
    "agentmail": _understand_mail,
    "acp": _understand_acp,
    "ccos": _understand_ccos,
    "saop": _understand_saop,
}


# --- the boss -----------------------------------------------------------------------------------


def offer(dialect: str, task: str, to: str) -> None:
    """Offer a task in the own dialect."""
    if dialect == "aof":
        post("tasks", {"title": "Part", "id": task, "ready": True})
        payload = {"parentTaskId": PARENT, "fromAgent": f"boss-{dialect}", "toAgent": to}
        post("messages", _aof("handoff.request", task, to, **payload, dueBy="2099-01-01T00:00:00Z"))
    elif dialect == "agentmail":
        post("tasks", {"title": "Part", "id": task, "ready": True})
        body = f"Issue: {task}\nResume: false\nOrchestrator: boss-{dialect}\n"
        post("messages", {"subject": f"[{task}] SPAWN_REQUEST", "body_md": body, "to": [to]})
    elif dialect == "acp":
        package = {
            "task": {
                "task_id": task,
                "title": "Part",
                "objective": "It works",
                "success_criteria": ["the tests pass"],
            },
            "context": {"summary": "the words"},
            "work_state": {"status": "not_started", "next_step": "begin"},
        }
        post("messages", {"action": "initiate", "to_agent": to, **package})
    elif dialect == "ccos":
        post("messages", {"intent_id": task, "agent_id": to, "goal": "write python", "params": {}})
    else:  # SAOP has no offer of its own: its agents make a task for somebody
        post("tasks", {"title": "Part", "id": task, "ready": True, "assignee": to})


PARENT = "TASK-2026-01-01-099"


def lead(dialect: str, plan: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Offer all tasks, and wait until each has come to the end that its hand was told to say."""
    if dialect == "aof":
        post("tasks", {"title": "Whole", "id": PARENT, "ready": True})
        post(f"tasks/{PARENT}/claim", {"agent": f"boss-{dialect}"})
    for task, step in plan.items():
        offer(dialect, task, step["with"])
    told = {task: list[str]() for task in plan}
    for message in read_inbox(dialect):
        task, kind = understand(dialect, message)
        if kind and task in told:
            told[task].append(kind)
        if all(_is_ended(told[name], step["end"]) for name, step in plan.items()):
            break
    return told


def _is_ended(told: list[str], end: str) -> bool:
    # Some dialects have one word for a failure and a task that is blocked.
    return end in told or (end != "done" and bool({"failed", "help"} & {*told}))


# --- the hand -----------------------------------------------------------------------------------


def work(dialect: str, plan: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Take each task that is offered, and say how it goes."""
    told = {task: list[str]() for task in plan}
    for message in read_inbox(dialect):
        task, kind = understand(dialect, message)
        if kind != "offer" or task not in plan or told[task]:
            continue
        told[task].append(kind)
        begin(dialect, task, plan[task]["in"])
        for what in ("progress", "done") if plan[task]["end"] == "done" else (plan[task]["end"],):
            say(dialect, task, what, plan[task]["with"])
        if all(told.values()):
            break
    return told


def begin(dialect: str, task: str, offered_in: str) -> None:
    """Take a task: an ACP offer in words of the own dialect, others by a claim."""
    name = f"hand-{dialect}"
    if dialect == "agentmail":
        _write(task, "BEAD_ACCEPTED", "")
    elif offered_in == "acp" and dialect == "aof":
        post("messages", _aof("handoff.accepted", task, "dispatcher", accepted=True))
    elif offered_in == "acp" and dialect == "ccos":
        post("messages", {"intent_id": task, "agent_id": name, "message": "begun"})
    elif offered_in == "acp":
        post("messages", _turn(task, 0))
    else:
        post(f"tasks/{task}/claim", {"agent": name})


def say(dialect: str, task: str, what: str, to: str) -> None:
    """Say progress, help, done or failed in the own dialect."""
    name = f"hand-{dialect}"
    if dialect == "aof":
        tests = {"total": 0, "passed": 0, "failed": 0}
        report: dict[str, Any] = {
            "summaryRef": "outputs/summary.md",
            "notes": "the words",
            "tests": tests,
        }
        messages: dict[str, dict[str, Any]] = {
            "progress": _aof("status.update", task, agentId=name, progress="the words"),
            "help": _aof(
                "status.update", task, agentId=name, status="blocked", blockers=["the words"]
            ),
            "done": _aof("completion.report", task, outcome="done", **report),
            "failed": _aof(
                "completion.report", task, outcome="blocked", blockers=["the words"], **report
            ),
        }
        post("messages", messages[what])
    elif dialect == "agentmail":
        letters = {
            "progress": ("PROGRESS", "Step: 1\nStatus: the words\n"),
            "help": ("HELP_REQUEST", "Issue Type: STUCK\n\n## Question\nthe words\n"),
            "done": ("DONE", "Status: DONE\n\n## Summary\nthe words\n"),
            "failed": ("FAILED", "Status: FAILED\n\n## Failure\nType: ERROR\nReason: the words\n"),
        }
        _write(task, *letters[what])
    elif dialect == "acp":
        kinds = {"progress": "status.update", "done": "status.complete"}
        payload = {"text": "the words", **({"kind": "failed"} if what == "failed" else {})}
        type = kinds.get(what, "status.blocked")
        post("messages", {"type": type, "to": [to], "task_id": task, "payload": payload})
    elif dialect == "ccos":
        own = {"intent_id": task, "agent_id": name}
        said: dict[str, dict[str, Any]] = {
            "progress": {"progress": 50, "message": "the words"},
            "help": {"message": "the words", "meta": {"kind": "help_asked"}},
            "done": {"success": True, "output": "the words"},
            "failed": {"success": False, "error": "the words"},
        }
        post("messages", own | said[what])
    elif what == "progress":
        post("messages", _turn(task, 1))
    elif what == "help":
        post(
            "messages", _event(task, {"type": "NOTICE", "kind": "help_asked", "text": "the words"})
        )
    else:
        to_state = "review" if what == "done" else "blocked"
        moved = {"type": "TASK_TRANSITION", "from_state": "in-progress", "to_state": to_state}
        post("messages", _event(task, moved))


def _write(task: str, type: str, body: str) -> None:
    letter = {"subject": f"[{task}] {type}", "body_md": f"Bead: {task}\n{body}", "to": ["mia"]}
    post("messages", letter)


def _aof(type: str, task: str, to: str = "dispatcher", **payload: Any) -> dict[str, Any]:
    head = {"protocol": "aof", "version": 1, "type": type, "taskId": task, "fromAgent": NAME}
    return {**head, "toAgent": to, "sentAt": AT, "payload": {"taskId": task, **payload}}


def _turn(task: str, index: int) -> dict[str, Any]:
    metadata = {"version": "1.0.0", "task_id": task, "timestamp": AT, "confidence": 0.8}
    return {
        "turn_index": index,
        "agent_id": "developer",
        "role": "developer",
        "content": {"thought": "the words", "action": "look", "observation": "it is there"},
        "metadata": {**metadata, "estimated_complexity": "low"},
    }


def _event(task: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    number = task.rpartition("-")[2]
    return {
        "event_id": f"00000000-0000-4000-8000-{int(number):012}",
        "session_id": "s-hand",
        "payload": {"task_id": task, "timestamp": AT, **payload},
    }


if __name__ == "__main__":
    ROLE, DIALECT = sys.argv[1:3]
    NAME = f"{ROLE}-{DIALECT}"
    run = lead if ROLE == "boss" else work
    sys.stdout.write(json.dumps(run(DIALECT, json.loads(sys.argv[3]))) + "\n")
