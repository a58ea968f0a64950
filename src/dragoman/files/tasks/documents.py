"""Run artifacts and handoffs as documents, in the form that the AOF guide shows them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from dragoman.core.moments import to_rfc3339
from dragoman.core.states.intent import Intent
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import Delegation, Reported
from dragoman.files.escapes import without_markup
from dragoman.files.tasks.story import Attempt
from dragoman.text.safe_text import harmless_json, safe_text

_WIDTH: Final = 80
_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_OPENING: Final = re.compile(r"^(\s*(?:[0-9]{1,9}(?=[.)])|(?=[#>+*~`=<|-])))")
"""Beginning of a block in Markdown; a backslash there makes it plain text."""
_NO_TESTS: Final = {"total": 0, "passed": 0, "failed": 0}


def write_json(document: Mapping[str, Any]) -> bytes:
    """Format a document, indented by two; a list is on one line where it fits."""
    return (_shown(document, "", 0) + "\n").encode()


def _shown(value: Any, indent: str, used: int) -> str:
    if isinstance(value, Mapping) and value:
        lines = [
            f"{indent}  {_flat(key)}: {_shown(inner, indent + '  ', len(indent) + len(key) + 6)}"
            for key, inner in cast(Mapping[str, Any], value).items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    flat = _flat(value)
    if isinstance(value, list | tuple) and value and used + len(flat) + 1 > _WIDTH:
        items = cast(Sequence[Any], value)
        lines = [f"{indent}  {_shown(item, indent + '  ', len(indent) + 2)}" for item in items]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return flat


def _flat(value: Any) -> str:
    return harmless_json(_encode(value))


def run_document(task_id: str, attempt: Attempt) -> bytes:
    """run.json: the attempt, written when its lease is taken."""
    document: dict[str, Any] = {
        "taskId": task_id,
        "agentId": attempt.agent,
        "startedAt": to_rfc3339(attempt.started_at),
        "status": attempt.status,
        "artifactPaths": {"inputs": "inputs/", "work": "work/", "output": "output/"},
        "metadata": {},
    }
    if attempt.status == "expired":
        document["expiredAt"] = to_rfc3339(attempt.ended_at)
    if attempt.reason:
        document["reason"] = attempt.reason
    if attempt.unreported is not None:
        document["notes"] = attempt.unreported.notes
    return write_json(document)


def heartbeat_document(task_id: str, lease: Lease) -> bytes:
    """run_heartbeat.json: the holder's last heartbeat."""
    return write_json(
        {
            "taskId": task_id,
            "agentId": lease.holder,
            "lastHeartbeat": to_rfc3339(lease.beat_at),
            "beatCount": lease.beats,
            "expiresAt": to_rfc3339(lease.expires_at),
        }
    )


def result_document(task_id: str, report: Reported) -> bytes:
    """run_result.json: the result of the attempt, in its agent's words.

    The details of a report in another dialect may hold anything. Only fields in the form of AOF/1
    are written, so that readers need not check them; the event line has all of it.
    """
    said = report.details
    deliverables, tests = said.get("deliverables"), said.get("tests")
    return write_json(
        {
            "taskId": task_id,
            "agentId": report.agent,
            "completedAt": to_rfc3339(report.at),
            "outcome": report.outcome,
            "summaryRef": _inside(said.get("summaryRef")) or "outputs/summary.md",
            "handoffRef": _inside(said.get("handoffRef")) or "outputs/handoff.md",
            "deliverables": list(filter(_inside, _items(deliverables))),
            "tests": tests if _are_counts(tests) else _NO_TESTS,
            "blockers": report.blockers,
            "notes": report.notes,
        }
    )


def _inside(path: Any) -> str:
    """The path if it leads downwards, else empty.

    Its other properties were checked on receipt. A placeholder of redaction may have replaced parts
    of it since; it is harmless.
    """
    is_path = isinstance(path, str) and not path.startswith("/") and "\\" not in path
    return path if is_path and ".." not in path.split("/") else ""


def _items(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _are_counts(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    counts = cast(Mapping[str, Any], value)
    return counts.keys() == _NO_TESTS.keys() and all(
        type(count) is int and count >= 0 for count in counts.values()
    )


def handoff_document(task_id: str, parent_id: str, asked: Delegation) -> bytes:
    """inputs/handoff.json: the delegation; this file is authoritative."""
    return write_json(
        {
            "taskId": task_id,
            "parentTaskId": parent_id,
            "fromAgent": asked.from_agent,
            "toAgent": asked.to_agent,
            "acceptanceCriteria": asked.acceptance_criteria,
            "expectedOutputs": asked.expected_outputs,
            "contextRefs": asked.context_refs,
            "constraints": asked.constraints,
            "dueBy": to_rfc3339(asked.due_by),
        }
    )


def request_document(task_id: str, asked: Intent) -> bytes:
    """inputs/request.json: the delegated intent, for agents that do not speak CCOS."""
    return write_json(
        {
            "taskId": task_id,
            "intentId": asked.id,
            "fromAgent": asked.by,
            "goal": asked.goal,
            "params": asked.params,
            "constraints": asked.constraints,
            **({"passedOn": asked.passed_on} if asked.passed_on else {}),
        }
    )


def handoff_page(asked: Delegation) -> bytes:
    """inputs/handoff.md: the delegation for a reader; no text in it can make a line or heading."""
    sections = (
        ("Acceptance Criteria", asked.acceptance_criteria),
        ("Expected Outputs", asked.expected_outputs),
        ("Context References", asked.context_refs),
        ("Constraints", asked.constraints),
    )
    lines = [
        "# Handoff Request",
        "",
        f"**From:** {asked.from_agent}",
        f"**To:** {asked.to_agent}",
        f"**Due By:** {to_rfc3339(asked.due_by)}",
    ]
    for heading, items in sections:
        shown = [f"- {_plain(item)}" for item in items] or ["None."]
        lines += ["", f"## {heading}", "", *shown]
    return ("\n".join(lines) + "\n").encode()


def _plain(item: str) -> str:
    """Escape a text so that it stays on one line, and begins no heading or list."""
    return _OPENING.sub(r"\1\\", without_markup(safe_text(item, one_line=True)))
