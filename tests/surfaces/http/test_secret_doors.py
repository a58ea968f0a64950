"""Secrets of every class through every field that takes text, and what of them is on record.

`DRAGOMAN_LONG_TESTS=1` sends more cases of each class.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Any, cast

import msgspec
import pytest

from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from tests.conftest import LONG_RUN
from tests.protocols.acp.hub import offer
from tests.protocols.saop.hub import event, thought, turn
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.http.test_identity_abuses import with_field
from tests.text import recall_corpus

pytestmark = proves("REDACT-DOORS")

CASES_PER_CLASS = 40 if os.environ.get(LONG_RUN) else 1

CLASSES = [name for name in recall_corpus.CLASSES if not name.startswith("known")]
"""Known values are those of a hub's own settings and environment, which this hub does not have."""

RECALL = {"named, any secret": 0.98}
"""Class -> share that is masked at the least; all others: every one."""

_NUMBERS = count(1)

TASK = "TASK-2026-02-09-001"

_TASK = f"/v1/tasks/{TASK}"

DOORS: Mapping[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "task": ("/v1/tasks", {"title": "x"}, ("title", "body")),
    "note": (f"{_TASK}/note", {"text": "x"}, ("text",)),
    "update": (f"{_TASK}/update", {"progress": "x"}, ("progress", "notes")),
    "ask": (f"{_TASK}/ask", {"text": "x"}, ("text",)),
    "answer": (f"{_TASK}/answer", {"text": "x"}, ("text",)),
    "edit": (f"{_TASK}/edit", {}, ("title", "body")),
    "delegate": (
        f"{_TASK}/delegate",
        {"title": "x", "assignee": "bob", "due_by": "2026-12-01T00:00:00Z"},
        ("title", "body"),
    ),
    "pause": ("/v1/agents/bob/pause", {}, ("reason",)),
    "aof": ("/v1/aof/aof_task_update", {"taskId": TASK, "progress": "x"}, ("progress", "notes")),
    "mail": (
        "/v1/agentmail/mail.send",
        {"to": ["bob"], "subject": "x", "body_md": "x"},
        ("subject", "body_md", "unheard_of"),
    ),
    "reservation": ("/v1/agentmail/reserve.take", {"patterns": ["src/"]}, ("reason",)),
    "handoff": (
        "/v1/acp/acp_handoff",
        offer(task=TASK),
        ("reason", "context.summary", "task.objective", "work_state.next_step"),
    ),
    "acp": (
        "/v1/acp/acp_send",
        {"to": ["bob"], "type": "status.update", "payload": {"a": "x"}},
        ("payload.a",),
    ),
    "work item": ("/v1/acp/workq.create", {"title": "x"}, ("title",)),
    "intent": ("/v1/ccos/ccos.delegate", {"goal": "x"}, ("goal",)),
    "turn": (
        "/v1/saop/saop.turn",
        turn(),
        ("content.thought", "content.action", "content.observation"),
    ),
    "thought": ("/v1/saop/saop.event", event(1, thought("x", final=True)), ("payload.chunk",)),
    "no message": ("/v1/messages?dialect=aof", {"protocol": "aof", "version": 1}, ("payload",)),
}
"""Door -> its path, a body, and the fields that take text."""


def fresh(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Give what must be new in each message a number of its own."""
    number = next(_NUMBERS)
    if path.endswith("saop.turn"):
        return {**body, "turn_index": number}
    if path.endswith("saop.event"):
        return {**body, **event(number, body["payload"], session=f"s-{number}")}
    return body


def texts_in(value: Any) -> Iterator[str]:
    """All texts of a document, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in cast(dict[str, Any], value).items():
            yield from (name, *texts_in(part))
    elif isinstance(value, list):
        for part in cast(list[Any], value):
            yield from texts_in(part)


@pytest.fixture
def server() -> Iterator[HubServer]:
    """Give a hub with a task that the developer holds."""
    with serving(HubServer()) as server:
        for name in ("bob", "developer"):
            server.add_agent(name)
        server.add_agent("orla", "orchestrator")
        server.submit(CreateTask("x", TASK, ready=True), ClaimTask(TASK, "developer"))
        yield server


@pytest.mark.parametrize("name", CLASSES)
def test_secret_is_masked_through_every_door(server: HubServer, name: str) -> None:
    sent = kept = tried = 0
    doors = set[str]()
    for case in islice(recall_corpus.CLASSES[name](), CASES_PER_CLASS):
        tried += 1
        for door, (path, body, fields) in DOORS.items():
            by = "orla" if door in ("pause", "intent", "answer") else "developer"
            for field in fields:
                before = server.store.head()
                message = with_field(fresh(path, body), field, case.text)
                response = server.request("POST", path, message, by=by)
                assert response.status < 500, (door, response)
                entries = server.store.entries(before, 100)
                recorded = "\n".join(
                    text for entry in entries for text in texts_in(msgspec.json.decode(entry.line))
                )
                sent += bool(entries)
                doors.update([door] if entries else ())
                kept += not case.is_masked(recorded)
    assert doors == DOORS.keys(), "nothing is on record of the others"
    assert sent > 20 * tried
    assert kept <= sent * (1 - RECALL.get(name, 1.0))
