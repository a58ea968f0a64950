"""Agents of `dragoman demo`: `python demo_agents.py NAME PAUSE`, with nothing but Python itself.

The hub starts wren and finch, who print AOF/1. ivy and rex are started beside it, and ask for what
concerns them: letters, and handoffs, whose work rex shows turn by turn. PAUSE is in seconds.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import CONFLICT, HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

_WAIT_MS = 30_000
_PAGES = 6
_SESSION = "review-fr-1"


# --- hub --------------------------------------------------------------------------------------


def call(path: str, body: Any = None) -> Any:
    """Call the hub as this agent; the answer."""
    connection = HTTPConnection(urlsplit(os.environ["DRAGOMAN_URL"]).netloc)
    headers = {
        "Authorization": f"Bearer {os.environ['DRAGOMAN_TOKEN']}",
        "Content-Type": "application/json",
    }
    method = "GET" if body is None else "POST"
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 400 and answer.status != CONFLICT:
        sys.exit(f"{path}: {answer.status} {text.decode()}")
    return json.loads(text)


def messages(path: str) -> Iterator[dict[str, Any]]:
    """Messages of a mailbox as they come."""
    after = 0
    while True:
        page = call(f"{path}?wait={_WAIT_MS}", {"after": after})
        yield from page["messages"]
        after = page["cursor"]


def now() -> str:
    """The time."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


# --- wren and finch: AOF/1 --------------------------------------------------------------------


def tell(progress: str, notes: str = "") -> None:
    """Print a status update."""
    task, agent = os.environ["DRAGOMAN_TASK"], os.environ["DRAGOMAN_AGENT"]
    message = {
        "protocol": "aof",
        "version": 1,
        "type": "status.update",
        "taskId": task,
        "fromAgent": agent,
        "toAgent": "dispatcher",
        "sentAt": now(),
        "payload": {"taskId": task, "agentId": agent, "progress": progress, "notes": notes},
    }
    sys.stdout.write(f"AOF/1 {json.dumps(message)}\n")
    sys.stdout.flush()


def wren(pause: float) -> None:
    """Translate half of it, and be killed."""
    time.sleep(pause)
    tell(f"{_PAGES // 2} of {_PAGES} pages are translated", f"process {os.getpid()}")
    time.sleep(_WAIT_MS)


def finch(pause: float) -> None:
    """Go on where the last attempt stopped, ask what is unclear, and hand it to a reviewer."""
    is_begun = "pages are translated" in sys.stdin.read()
    time.sleep(pause)
    tell("going on where wren stopped" if is_begun else "beginning")
    time.sleep(pause)
    task = os.environ["DRAGOMAN_TASK"]
    letter = {
        "to": ["ivy"],
        "subject": f"[{task}] HELP_REQUEST",
        "body_md": f"Bead: {task}\nIssue Type: SPEC_UNCLEAR\n\n## Problem\n"
        "The guide says “you” to its readers.\n\n## Question\ntu or vous?\n",
    }
    call("/v1/agentmail/mail.send", letter)
    delivered = (one["message"] for one in messages("/v1/aof/aof_inbox"))
    answer = next(one for one in delivered if one["fromAgent"] == "ivy")
    time.sleep(pause)
    tell(f"{_PAGES} of {_PAGES} pages are translated", answer["payload"]["progress"])
    time.sleep(pause)
    hand_over(task)
    time.sleep(_WAIT_MS)


def hand_over(task: str) -> None:
    """Offer the work to rex, with the file and its hash; a person has to approve it."""
    data = Path(os.environ["DRAGOMAN_FOLDER"]).parents[2]
    file = data / "teamspaces" / "default" / "artifacts" / "guide.fr.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# Le guide\n\nVous commencez ici.\n", encoding="utf-8")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    call(
        "/v1/acp/acp_handoff",
        {
            "action": "initiate",
            "handoff_id": "review-fr",
            "to_agent": "rex",
            "task": {
                "task_id": task,
                "title": "Review the French guide",
                "objective": "Readers find no mistake",
                "success_criteria": ["every page says vous"],
            },
            "context": {"summary": f"{_PAGES} pages, vous throughout."},
            "work_state": {"status": "review", "next_step": "Read it against the original."},
            "artifacts": [
                {
                    "artifact_id": "guide",
                    "ref": {"type": "file", "path": file.name, "sha256": digest},
                }
            ],
            "policy": {"requires_human_approval": True},
        },
    )


# --- ivy: Agent Mail --------------------------------------------------------------------------


def ivy(pause: float) -> None:
    """Answer every request for help."""
    for letter in messages("/v1/agentmail/mail.inbox"):
        if letter["type"] == "HELP_REQUEST":
            time.sleep(pause)
            task = letter["bead_id"]
            answer = {
                "to": [letter["from"]],
                "subject": f"Re: [{task}] HELP_RESPONSE",
                "body_md": f"Bead: {task}\n\n## Guidance\nvous: the readers are customers.\n",
                "reply_to": letter["id"],
            }
            call("/v1/agentmail/mail.send", answer)


# --- rex: ACP handoff and SAOP ----------------------------------------------------------------


def rex(pause: float) -> None:
    """Take over what is offered, once it is approved, and show the work turn by turn."""
    for message in messages("/v1/acp/acp_inbox"):
        if message["type"] == "handoff.initiate":
            review(message["payload"]["handoff_id"], message["task_id"], pause)
            return


def review(handoff: str, task: str, pause: float) -> None:
    """Accept, read, and complete."""
    time.sleep(pause)
    if not act("accept", handoff)["success"]:  # a person has to approve it first
        call(f"/v1/events?after=0&type=handoff.approved&wait={_WAIT_MS}")
        act("accept", handoff)
    act("activate", handoff, session=_SESSION)
    think("I read the French pages against the originals.", 0, pause)
    use_tool("grep", {"pattern": r"\btu\b", "path": "guide.fr.md"}, pause)
    think("No “tu” anywhere: the criterion is met.", 1, pause)
    turn = {
        "turn_index": 0,
        "agent_id": "reviewer",
        "role": "reviewer",
        "content": {
            "thought": "No “tu” anywhere: the criterion is met.",
            "action": "grep -w tu guide.fr.md",
            "observation": "no match in 6 pages",
        },
        "metadata": {
            "version": "1.0.0",
            "task_id": task,
            "timestamp": now(),
            "confidence": 0.93,
            "estimated_complexity": "low",
        },
    }
    call("/v1/saop/saop.turn", turn)
    time.sleep(pause)
    act("complete", handoff, completion_notes="Six pages read, no mistake found.")


def act(action: str, handoff: str, **more: Any) -> Any:
    """Do something with a handoff; the answer."""
    return call("/v1/acp/acp_handoff", {"action": action, "handoff_id": handoff, **more})


def trace(**payload: Any) -> None:
    """Send a live event."""
    event = {"event_id": str(uuid4()), "session_id": _SESSION, "payload": payload}
    call("/v1/saop/saop.event", event)


def think(text: str, turn: int, pause: float) -> None:
    """Stream a thought in two chunks."""
    middle = text.index(" ", len(text) // 2)
    for chunk, is_final in ((text[:middle], False), (text[middle:], True)):
        trace(
            type="THOUGHT_STREAM",
            agent_id="reviewer",
            turn_index=turn,
            chunk=chunk,
            is_final=is_final,
        )
        time.sleep(pause / 2)


def use_tool(tool: str, arguments: Any, pause: float) -> None:
    """Use a tool."""
    started = time.monotonic()
    call_id = {"call_id": "c-1", "tool": tool}
    trace(type="TOOL_LIFECYCLE_INVOKED", **call_id, arguments=arguments, timestamp=now())
    time.sleep(pause)
    duration = round((time.monotonic() - started) * 1000)
    trace(
        type="TOOL_LIFECYCLE_COMPLETED",
        **call_id,
        status="success",
        duration_ms=duration,
        timestamp=now(),
    )


AGENTS = {"wren": wren, "finch": finch, "ivy": ivy, "rex": rex}

if __name__ == "__main__":
    AGENTS[sys.argv[1]](float(sys.argv[2]))
