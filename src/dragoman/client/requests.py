"""Requests to the hub as values: pure, whoever sends them.

A write has an idempotency key before it is sent for the first time, so that it can be sent again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict

import msgspec
from msgspec import Struct

from dragoman.client.models import AcceptedMessage, Claim, EventPage, Task, TaskPage
from dragoman.core import not_found
from dragoman.core.base import Outcome, Priority, Status
from dragoman.core.errors import Refused
from dragoman.core.ids import is_task_name
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.text.strict_json import encode_json

JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
MAX_BATCH_BYTES: Final = 1024 * 1024
"""Size of one batch."""

Message = Mapping[str, Any] | str | bytes
"""A message of any dialect: an object, or its text."""


class Request(Struct, frozen=True):
    """One request to the hub."""

    method: str
    path: str
    response_type: Any
    """The type of the response; `bytes`: as it comes."""
    query: Mapping[str, str | int] = {}
    body: bytes = b""
    media_type: str = JSON
    key: str = ""
    wait_ms: int = 0
    """The time that the hub may wait on purpose before it answers."""


class TaskFields(TypedDict, total=False):
    """Optional fields of a new task; for the others the hub has defaults."""

    id: str
    body: str
    ready: bool
    """True if it may be claimed at once; else it waits in the backlog."""
    assignee: str
    parent: str
    review_required: bool
    priority: Priority
    blocked_by: Sequence[str]
    discovered_from: str
    aliases: Sequence[str]
    max_attempts: int


class SubtaskFields(TypedDict, total=False):
    """Optional fields of a subtask that is handed off to another agent."""

    body: str
    priority: Priority
    acceptance_criteria: Sequence[str]
    expected_outputs: Sequence[str]
    context_refs: Sequence[str]
    constraints: Sequence[str]


class EventFilter(Struct, frozen=True):
    """A filter for events; an empty field matches any."""

    task: str = ""
    type: str = ""
    agent: str = ""
    dialect: str = ""

    def query(self) -> dict[str, str | int]:
        """Return it as query parameters."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value}


class Subtask(Struct, frozen=True):
    """A part of a task that is handed off to another agent."""

    parent: Task
    agent: str
    to: str
    due_by: datetime
    fields: SubtaskFields

    def __post_init__(self) -> None:
        if self.due_by.tzinfo is None:
            raise ValueError("due_by has no time zone: give one, as datetime.now(UTC) does")


class ApiDescription(Struct, frozen=True):
    """The part of the hub's OpenAPI document that is needed here."""

    paths: dict[str, Any]


def create_task(title: str, fields: TaskFields, key: str) -> Request:
    """Create a task, ready to be claimed unless said otherwise."""
    return _post("/v1/tasks", Task, {"title": title, "ready": True, **fields}, key)


def show_task(name: str) -> Request:
    """Show one task by any of its names."""
    return Request("GET", _task_path(name), Task)


def list_tasks(
    status: Status | None, assignee: str, *, ready: bool, cursor: int | None, limit: int
) -> Request:
    """List a page of tasks, newest first."""
    query: dict[str, str | int] = {"limit": limit}
    if status is not None:
        query["status"] = status
    if assignee:
        query["assignee"] = assignee
    if ready:
        query["ready"] = "true"
    if cursor is not None:
        query["cursor"] = cursor
    return Request("GET", "/v1/tasks", TaskPage, query)


def move_task(name: str, to: Status, reason: str, key: str) -> Request:
    """Move a task to another status."""
    return _post(_task_path(name, "move"), Task, {"to": to, "reason": reason}, key)


def wait_for_work(agent: str, session: str, ttl_ms: int, wait_ms: int, key: str) -> Request:
    """Wait for the next task for an agent; None if there was none in time."""
    body = {"agent": agent, "session": session, "ttl_ms": ttl_ms, "wait_ms": wait_ms}
    return _post("/v1/work", Claim | None, body, key, wait_ms)


def renew_lease(name: str, fence: int) -> Request:
    """Renew the lease. It has no key: a repeat does no harm."""
    return _post(_task_path(name, "heartbeat"), Any, {"fence": fence}, "")


def add_note(name: str, text: str, fence: int, key: str) -> Request:
    """Add a line to the work log."""
    return _post(_task_path(name, "note"), Task, {"text": text, "fence": fence}, key)


def report_progress(name: str, text: str, notes: str, fence: int, key: str) -> Request:
    """Report progress."""
    body = {"progress": text, "notes": notes, "fence": fence}
    return _post(_task_path(name, "update"), Task, body, key)


def release_task(name: str, reason: str, fence: int, key: str) -> Request:
    """Release a task."""
    return _post(_task_path(name, "release"), Task, {"reason": reason, "fence": fence}, key)


class AttemptResult(Struct, frozen=True):
    """The outcome of an attempt."""

    outcome: Outcome
    notes: str = ""
    blockers: Sequence[str] = ()
    details: Mapping[str, Any] = {}


def report_outcome(name: str, result: AttemptResult, fence: int, key: str) -> Request:
    """Report the end of an attempt, which takes effect at once."""
    body = {
        "outcome": result.outcome,
        "notes": result.notes,
        "blockers": result.blockers,
        "details": dict(result.details),
        "fence": fence,
    }
    return _post(_task_path(name, "report"), Task, body, key)


def create_subtask(title: str, subtask: Subtask, key: str) -> Request:
    """Create the task of the subtask, for that agent only."""
    fields = subtask.fields
    return create_task(
        title,
        {
            "body": fields.get("body", ""),
            "priority": fields.get("priority", "normal"),
            "assignee": subtask.to,
            "parent": subtask.parent.id,
        },
        key,
    )


def hand_off(child: Task, subtask: Subtask, key: str) -> Request:
    """Ask another agent to do the subtask, in AOF/1, the one dialect that can express it.

    A repeat is the same message: its time is that of the subtask, not of its sending.
    """
    fields = subtask.fields
    message = {
        "protocol": "aof",
        "version": 1,
        "type": "handoff.request",
        "taskId": child.aof_id,
        "fromAgent": subtask.agent,
        "toAgent": subtask.to,
        "sentAt": child.created_at,
        "payload": {
            "taskId": child.aof_id,
            "parentTaskId": subtask.parent.aof_id,
            "fromAgent": subtask.agent,
            "toAgent": subtask.to,
            "dueBy": subtask.due_by.isoformat(),
            "acceptanceCriteria": list(fields.get("acceptance_criteria", ())),
            "expectedOutputs": list(fields.get("expected_outputs", ())),
            "contextRefs": list(fields.get("context_refs", ())),
            "constraints": list(fields.get("constraints", ())),
        },
    }
    return send_message(message, "", key)


def send_message(message: Message, dialect: str, key: str) -> Request:
    """Send one message of any dialect."""
    query: dict[str, str | int] = {"dialect": dialect} if dialect else {}
    return Request("POST", "/v1/messages", AcceptedMessage, query, _to_bytes(message), JSON, key)


def send_signed(key: str) -> Request:
    """Send a signed message; it is added when it is sent, as a signature is valid once."""
    return Request("POST", "/v1/signed", AcceptedMessage, key=key)


def send_batches(messages: Iterable[Message], dialect: str, key: str) -> Iterable[Request]:
    """Send many messages, a batch of lines at a time; each has a key derived from the first."""
    query: dict[str, str | int] = {"dialect": dialect} if dialect else {}
    lines: list[bytes] = []
    size = number = 0
    for message in messages:
        line = _to_line(_to_bytes(message))
        if lines and size + len(line) > MAX_BATCH_BYTES:
            yield _batch(lines, query, f"{key}:{number}")
            lines, size, number = [], 0, number + 1
        lines.append(line)
        size += len(line)
    if lines:
        yield _batch(lines, query, f"{key}:{number}")


def describe_api() -> Request:
    """Fetch the hub's OpenAPI document, which names its operations."""
    return Request("GET", "/openapi.json", ApiDescription)


def call_operation(path: str, arguments: Mapping[str, Any], key: str) -> Request:
    """Call an operation at its path; the reply is in its dialect's own form."""
    return _post(path, Any, dict(arguments), key)


def operation_paths(described: ApiDescription) -> dict[str, str]:
    """Return operation -> its path, from the hub's OpenAPI document."""
    found = (re.fullmatch(r"/v1/[a-z0-9]+/([^{}/]+)", path) for path in described.paths)
    return {one[1]: one[0] for one in found if one is not None}


def list_events(event_filter: EventFilter, after: int, limit: int, wait_ms: int) -> Request:
    """List events after a position, or those that come within the wait."""
    query = event_filter.query() | {"after": after, "limit": limit, "wait": wait_ms}
    return Request("GET", "/v1/events", EventPage, query, wait_ms=wait_ms)


def last_position() -> Request:
    """Fetch a page without events, of which `next` is the last position of the ledger."""
    return list_events(EventFilter(), MAX_SAFE_INTEGER, 1, 0)


def _task_path(name: str, action: str = "") -> str:
    if not is_task_name(name):
        # Not sent: as a part of a path it could mean something else.
        raise Refused(not_found.task(name))
    return f"/v1/tasks/{name}/{action}" if action else f"/v1/tasks/{name}"


def _post(path: str, response_type: Any, body: object, key: str, wait_ms: int = 0) -> Request:
    return Request("POST", path, response_type, body=encode_json(body), key=key, wait_ms=wait_ms)


def _batch(lines: Sequence[bytes], query: Mapping[str, str | int], key: str) -> Request:
    return Request("POST", "/v1/messages", bytes, query, b"\n".join(lines), JSON_LINES, key)


def _to_bytes(message: Message) -> bytes:
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else encode_json(dict(message))


def _to_line(message: bytes) -> bytes:
    """Put a message on one line: between the parts of JSON a line break is a space."""
    return b" ".join(message.splitlines())
