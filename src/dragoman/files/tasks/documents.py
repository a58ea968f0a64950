"""Run artifacts and handoffs as documents, in the form that the AOF guide shows them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from dragoman.core.moments import to_rfc3339
from dragoman.core.states.intent import Intent
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import Delegation, Report
from dragoman.files.escapes import escape_markup
from dragoman.files.tasks.story import Attempt
from dragoman.text.safe_text import harmless_json, safe_text

_WIDTH: Final = 80
_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_BLOCK_START: Final = re.compile(r"^(\s*(?:[0-9]{1,9}(?=[.)])|(?=[#>+*~`=<|-])))")
"""Beginning of a block in Markdown; a backslash there makes it plain text."""
_NO_TESTS: Final = {"total": 0, "passed": 0, "failed": 0}


def format_json(document: Mapping[str, Any]) -> bytes:
    """Format a document, indented by two; a list is on one line where it fits."""
    return (_format_value(document, "", 0) + "\n").encode()


def _format_value(value: Any, indent: str, used: int) -> str:
    if isinstance(value, Mapping) and value:
        lines = [
            f"{indent}  {_format_flat(key)}: "
            f"{_format_value(inner, indent + '  ', len(indent) + len(key) + 6)}"
            for key, inner in cast(Mapping[str, Any], value).items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    flat = _format_flat(value)
    if isinstance(value, list | tuple) and value and used + len(flat) + 1 > _WIDTH:
        items = cast(Sequence[Any], value)
        lines = [
            f"{indent}  {_format_value(item, indent + '  ', len(indent) + 2)}" for item in items
        ]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return flat


def _format_flat(value: Any) -> str:
    return harmless_json(_encode(value))


def render_run(task_id: str, attempt: Attempt) -> bytes:
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
    return format_json(document)


def render_heartbeat(task_id: str, lease: Lease) -> bytes:
    """run_heartbeat.json: the holder's last heartbeat."""
    return format_json(
        {
            "taskId": task_id,
            "agentId": lease.holder,
            "lastHeartbeat": to_rfc3339(lease.beat_at),
            "beatCount": lease.beats,
            "expiresAt": to_rfc3339(lease.expires_at),
        }
    )


def render_result(task_id: str, report: Report) -> bytes:
    """run_result.json: the result of the attempt, in its agent's words.

    The details of a report in another dialect may hold anything. Only fields in the form of AOF/1
    are written, so that readers need not check them; the event line has all of it.
    """
    details = report.details
    deliverables, tests = details.get("deliverables"), details.get("tests")
    return format_json(
        {
            "taskId": task_id,
            "agentId": report.agent,
            "completedAt": to_rfc3339(report.at),
            "outcome": report.outcome,
            "summaryRef": _relative_path_or_empty(details.get("summaryRef"))
            or "outputs/summary.md",
            "handoffRef": _relative_path_or_empty(details.get("handoffRef"))
            or "outputs/handoff.md",
            "deliverables": list(filter(_relative_path_or_empty, _as_list(deliverables))),
            "tests": tests if _is_test_counts(tests) else _NO_TESTS,
            "blockers": report.blockers,
            "notes": report.notes,
        }
    )


def _relative_path_or_empty(path: Any) -> str:
    """The path if it leads downwards, else empty.

    Its other properties were checked on receipt. A placeholder of redaction may have replaced parts
    of it since; it is harmless.
    """
    is_path = isinstance(path, str) and not path.startswith("/") and "\\" not in path
    return path if is_path and ".." not in path.split("/") else ""


def _as_list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _is_test_counts(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    counts = cast(Mapping[str, Any], value)
    return counts.keys() == _NO_TESTS.keys() and all(
        type(count) is int and count >= 0 for count in counts.values()
    )


def render_delegation(task_id: str, parent_id: str, delegation: Delegation) -> bytes:
    """inputs/handoff.json: the delegation; this file is authoritative."""
    return format_json(
        {
            "taskId": task_id,
            "parentTaskId": parent_id,
            "fromAgent": delegation.from_agent,
            "toAgent": delegation.to_agent,
            "acceptanceCriteria": delegation.acceptance_criteria,
            "expectedOutputs": delegation.expected_outputs,
            "contextRefs": delegation.context_refs,
            "constraints": delegation.constraints,
            "dueBy": to_rfc3339(delegation.due_by),
        }
    )


def render_intent_request(task_id: str, intent: Intent) -> bytes:
    """inputs/request.json: the delegated intent, for agents that do not speak CCOS."""
    return format_json(
        {
            "taskId": task_id,
            "intentId": intent.id,
            "fromAgent": intent.by,
            "goal": intent.goal,
            "params": intent.params,
            "constraints": intent.constraints,
            **({"passedOn": intent.passed_on} if intent.passed_on else {}),
        }
    )


def render_delegation_page(delegation: Delegation) -> bytes:
    """inputs/handoff.md: the delegation for a reader; no text in it can make a line or heading."""
    sections = (
        ("Acceptance Criteria", delegation.acceptance_criteria),
        ("Expected Outputs", delegation.expected_outputs),
        ("Context References", delegation.context_refs),
        ("Constraints", delegation.constraints),
    )
    lines = [
        "# Handoff Request",
        "",
        f"**From:** {delegation.from_agent}",
        f"**To:** {delegation.to_agent}",
        f"**Due By:** {to_rfc3339(delegation.due_by)}",
    ]
    for heading, items in sections:
        bullets = [f"- {_escape_item(item)}" for item in items] or ["None."]
        lines += ["", f"## {heading}", "", *bullets]
    return ("\n".join(lines) + "\n").encode()


def _escape_item(item: str) -> str:
    """Escape a text so that it stays on one line, and begins no heading or list."""
    return _BLOCK_START.sub(r"\1\\", escape_markup(safe_text(item, one_line=True)))
