"""Messages of agents in five dialects; each contains a word that no other message has."""

from collections.abc import Sequence
from typing import Any

from dragoman.core.timestamps import to_rfc3339
from dragoman.protocols.agentmail import compose

Message = dict[str, Any]


def aof(
    kind: str, sender: str, task: str, at: int, payload: Message, to: str = "dispatcher"
) -> Message:
    """Build an AOF/1 message."""
    return {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": task,
        "fromAgent": sender,
        "toAgent": to,
        "sentAt": to_rfc3339(at),
        "payload": payload,
    }


def aof_update(sender: str, task: str, at: int, word: str) -> Message:
    """Build a progress update."""
    payload = {"taskId": task, "agentId": sender, "progress": f"at {word}", "notes": ""}
    return aof("status.update", sender, task, at, payload)


def aof_report(sender: str, task: str, at: int, word: str, outcome: str) -> Message:
    """Build a completion report."""
    payload = {
        "outcome": outcome,
        "summaryRef": "outputs/summary.md",
        "tests": {"total": 1, "passed": 1, "failed": 0},
        "blockers": ["a key is missing"] if outcome == "blocked" else [],
        "notes": word,
    }
    return aof("completion.report", sender, task, at, payload)


def aof_request(
    sender: str, child: str, parent: str, *, at: int, due: int, word: str, to: str
) -> Message:
    """Build a delegation of a part of a task."""
    payload = {
        "taskId": child,
        "parentTaskId": parent,
        "fromAgent": sender,
        "toAgent": to,
        "acceptanceCriteria": [word],
        "expectedOutputs": [],
        "contextRefs": [],
        "constraints": [],
        "dueBy": to_rfc3339(due),
    }
    return aof("handoff.request", sender, child, at, payload, to)


def aof_answer(sender: str, child: str, at: int, word: str, *, is_accepted: bool) -> Message:
    """Build an acceptance or rejection of a delegation."""
    payload: Message = {"taskId": child, "accepted": is_accepted}
    if not is_accepted:
        payload["reason"] = word
    return aof(f"handoff.{'accepted' if is_accepted else 'rejected'}", sender, child, at, payload)


def letter(draft: compose.Draft, id: str, to: Sequence[str] = ()) -> Message:
    """Build a letter under an id of its sender's choice."""
    written = compose.render(draft)
    row = {"id": id, "subject": written.subject, "body_md": written.body_md}
    return row | ({"to": list(to)} if to else {})


def mail_report(bead: str, word: str, outcome: str) -> compose.Draft:
    """Build a report as a letter."""
    if outcome == "done":
        checks = {"tests_pass": True, "lint_pass": True, "build_pass": True}
        return compose.draft(
            "DONE", bead, commit_sha="0a1b2c3", files=["a.py"], **checks, summary=word
        )
    if outcome == "checkpoint":
        return compose.draft(
            "CHECKPOINT",
            bead,
            checkpoint_reason="CONTEXT_HIGH",
            partial_commit_sha="0a1b2c3",
            progress="half",
            context_usage=90,
            next_steps=word,
        )
    return compose.draft(
        "FAILED",
        bead,
        failure_type=outcome,
        reason=word,
        internal_attempts=1,
        recommendation="mend it",
    )


def turn(agent: str, task: str, index: int, at: int, word: str) -> Message:
    """Build a turn: thought, action and observation."""
    return {
        "turn_index": index,
        "agent_id": agent,
        "role": agent,
        "content": {"thought": word, "action": f"try {index}", "observation": "hm"},
        "metadata": {
            "version": "1.0.0",
            "task_id": task,
            "timestamp": to_rfc3339(at),
            "confidence": 0.8 if index % 2 else 0.2,
            "estimated_complexity": "medium",
        },
    }


def thought(agent: str, number: int, session: str, word: str) -> Message:
    """Build a chunk of a thought stream, which often has no end."""
    payload = {
        "type": "THOUGHT_STREAM",
        "agent_id": agent,
        "turn_index": 0,
        "chunk": f" {word}",
        "is_final": number % 3 == 0,
    }
    id = f"01890a5d-ac96-774b-bcce-{number:012x}"
    return {"event_id": id, "session_id": session, "payload": payload}


def handoff(id: str, task: str, to: str, item: str = "") -> Message:
    """Build the offer of a task."""
    refs = {"external_refs": [{"type": "workq_item", "value": f"workq:{item}"}]} if item else {}
    return {
        "action": "initiate",
        "handoff_id": id,
        "to_agent": to,
        "task": {
            "task_id": task,
            "title": f"Work {task}",
            "objective": "It works.",
            "success_criteria": ["the tests pass"],
            **refs,
        },
        "context": {"summary": "Half of it is there."},
        "work_state": {"status": "in_progress", "next_step": "the other half"},
    }
