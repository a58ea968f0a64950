"""Requests to the hub as values: pure, whoever sends them.

A write has an idempotency key before it is sent for the first time, so that it can be sent again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict

from msgspec import Struct

from dragoman.core import not_found
from dragoman.core.base import Priority
from dragoman.core.errors import Refused
from dragoman.core.ids import is_task_name
from dragoman.engine.schemas.accepted_message import AcceptedMessage
from dragoman.text.strict_json import encode_json

JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
MAX_BATCH_BYTES: Final = 1024 * 1024
"""Size of one batch."""

Message = Mapping[str, Any] | str | bytes
"""A message of any dialect: an object, or its text."""

Query = Mapping[str, str | int]


class Request(Struct, frozen=True):
    """One request to the hub."""

    method: str
    path: str
    response_type: Any
    """The type of the response; `bytes`: as it comes."""
    query: Query = {}
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


class ApiDescription(Struct, frozen=True):
    """The part of the hub's OpenAPI document that is needed here."""

    paths: dict[str, Any]

    def operation_paths(self) -> dict[str, str]:
        """Return operation -> its path."""
        found = (re.fullmatch(r"/v1/[a-z0-9]+/([^{}/]+)", path) for path in self.paths)
        return {one[1]: one[0] for one in found if one is not None}


def post(path: str, response_type: Any, body: object, key: str, wait_ms: int = 0) -> Request:
    """Send a JSON body."""
    return Request("POST", path, response_type, body=encode_json(body), key=key, wait_ms=wait_ms)


def task_path(name: str, action: str = "") -> str:
    """Return the path of a task, or of an action on it."""
    if not is_task_name(name):
        # Not sent: as a part of a path it could mean something else.
        raise Refused(not_found.task(name))
    return f"/v1/tasks/{name}/{action}" if action else f"/v1/tasks/{name}"


def send_message(message: Message, dialect: str, key: str) -> Request:
    """Send one message of any dialect."""
    body = _to_bytes(message)
    return Request("POST", "/v1/messages", AcceptedMessage, _to(dialect), body, JSON, key)


def send_batches(messages: Iterable[Message], dialect: str, key: str) -> Iterable[Request]:
    """Send many messages, a batch of lines at a time; each has a key derived from the first."""
    lines: list[bytes] = []
    size = number = 0
    for message in messages:
        # On one line: between the parts of JSON a line break is a space.
        line = b" ".join(_to_bytes(message).splitlines())
        if lines and size + len(line) > MAX_BATCH_BYTES:
            yield _batch(lines, dialect, f"{key}:{number}")
            lines, size, number = [], 0, number + 1
        lines.append(line)
        size += len(line)
    if lines:
        yield _batch(lines, dialect, f"{key}:{number}")


def _batch(lines: Sequence[bytes], dialect: str, key: str) -> Request:
    body = b"\n".join(lines)
    return Request("POST", "/v1/messages", bytes, _to(dialect), body, JSON_LINES, key)


def _to(dialect: str) -> Query:
    return {"dialect": dialect} if dialect else {}


def _to_bytes(message: Message) -> bytes:
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else encode_json(dict(message))
