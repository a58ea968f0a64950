"""Choices of a person in the live view: what can be done with what is selected, each with its key.

They are the actions that `dragoman status` suggests, as requests of the HTTP API. The hub decides:
what it refuses is shown in its words.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from dragoman.core.base import AttentionKind, Status
from dragoman.core.mail import HELP_RESPONSE_KIND
from dragoman.engine.schemas.status import AgentStatusResource, AttentionResource
from dragoman.engine.schemas.tasks import TaskSummary
from dragoman.surfaces.cli.live_view.hub_api import task_path

ANSWER, APPROVE, ASSIGN, DENY, MOVE, NOTE, PAUSE = "r", "a", "g", "d", "m", "n", "p"
RESUME, RETRY, REOPEN, SEND_BACK, TAKE_BACK = "u", "t", "o", "s", "b"


class Choice(Struct, frozen=True):
    """Something that a person can do."""

    key: str
    label: str
    path: str
    fields: Mapping[str, Any] = {}
    text_field: str = ""
    """Field of the request that a text fills, which the person is asked for; empty: none."""
    prompt: str = ""
    is_text_optional: bool = False
    gate: str = ""
    """The handoff whose package is approved or denied: its hash is shown first."""


# --- needs of a person ------------------------------------------------------------------------


def choices_for_item(item: AttentionResource) -> tuple[Choice, ...]:
    """Choices for something that needs a person."""
    return tuple(_ITEM_CHOICES[item.kind](item)) if item.kind in _ITEM_CHOICES else ()


def _answers(item: AttentionResource) -> Iterator[Choice]:
    if item.task and (item.question or item.kind == "question"):
        yield _answer(item.task, item.question or "")
    elif item.mail:
        yield Choice(
            ANSWER,
            "Reply",
            "/v1/agentmail/mail.send",
            {"to": [item.agent], "subject": HELP_RESPONSE_KIND, "reply_to": item.mail},
            "body_md",
            f"Your reply to {item.agent}",
        )


def _answer(task: str, question: str) -> Choice:
    return Choice(
        ANSWER,
        "Answer",
        task_path(task, "answer"),
        {"question": question},
        "text",
        "Your answer",
    )


def _gates(item: AttentionResource) -> Iterator[Choice]:
    handoff = item.handoff or ""
    for key, label, action in ((APPROVE, "Approve", "approve"), (DENY, "Deny", "deny")):
        yield Choice(
            key,
            label,
            "/v1/acp/acp_handoff",
            {"action": action, "handoff_id": handoff},
            "notes",
            f"{label} this package? A note, or nothing",
            is_text_optional=True,
            gate=handoff,
        )


def _task_choices(*keys: str) -> Callable[[AttentionResource], Iterator[Choice]]:
    def choices(item: AttentionResource) -> Iterator[Choice]:
        if item.task:
            yield from (_make(key, item.task) for key in keys)

    return choices


def _late(item: AttentionResource) -> Iterator[Choice]:
    # A late letter or handoff is somebody else's to deal with; a late delegation can go to another.
    if item.task and not item.mail and not item.handoff:
        yield _make(ASSIGN, item.task)


def _resumes(item: AttentionResource) -> Iterator[Choice]:
    yield _resume(item.agent or "")


def _resume(agent: str) -> Choice:
    return Choice(RESUME, "Resume", f"{_agent_path(agent)}/resume")


def _agent_path(name: str) -> str:
    return f"/v1/agents/{quote(name, safe='')}"


_ITEM_CHOICES: Final[Mapping[AttentionKind, Callable[[AttentionResource], Iterator[Choice]]]] = {
    "question": _answers,
    "help": _answers,
    "gate": _gates,
    "review": _task_choices(APPROVE, SEND_BACK),
    "deadletter": _task_choices(RETRY),
    "paused": _resumes,
    "no_progress": _task_choices(TAKE_BACK),
    "unknown_assignee": _task_choices(ASSIGN),
    "escalation": _late,
}


def choices_for_agent(agent: AgentStatusResource) -> tuple[Choice, ...]:
    """Choices for an agent."""
    if agent.paused is not None:
        return (_resume(agent.name),)
    path = f"{_agent_path(agent.name)}/pause"
    return (Choice(PAUSE, "Pause", path, {}, "reason", f"Why {agent.name} gets no more work"),)


# --- tasks ------------------------------------------------------------------------------------

_MOVES: Final[Mapping[Status, str]] = {
    "backlog": "ready, blocked, cancelled",
    "ready": "backlog, blocked, deadletter, cancelled",
    "in-progress": "ready, review, blocked, deadletter, cancelled",
    "blocked": "ready, review, deadletter, cancelled",
    "review": "done, ready, blocked, cancelled",
    "deadletter": "ready",
}
"""Status -> the statuses to which a person may move a task."""

_STATUS_KEYS: Final[Mapping[Status, str]] = {
    "in-progress": TAKE_BACK,
    "blocked": RETRY,
    "review": APPROVE + SEND_BACK,
    "deadletter": RETRY,
    "done": REOPEN,
    "cancelled": REOPEN,
}


def choices_for_task(task: TaskSummary) -> tuple[Choice, ...]:
    """Choices for a task."""
    found = [_answer(task.id, one.id) for one in task.questions[:1]]
    found += [_make(key, task.id) for key in _STATUS_KEYS.get(task.status, "")]
    if task.status in _MOVES:
        is_held = task.status == "in-progress"
        found.append(_make(ASSIGN, task.id, {"take": True} if is_held else {}))
        move = f"Move to one of: {_MOVES[task.status]}"
        found.append(Choice(MOVE, "Move", task_path(task.id, "move"), {}, "to", move))
    found.append(_make(NOTE, task.id))
    return tuple(found)


def choices_for_work(task: str) -> tuple[Choice, ...]:
    """Choices for a task that somebody works on."""
    return _make(TAKE_BACK, task), _make(NOTE, task)


_TASK_CHOICES: Final[Mapping[str, tuple[str, str, Mapping[str, Any], str, str]]] = {
    APPROVE: ("Approve", "approve", {}, "", ""),
    SEND_BACK: ("Send back", "send-back", {}, "reason", "What is wrong with the work?"),
    RETRY: ("Try again", "retry", {}, "", ""),
    REOPEN: ("Reopen", "reopen", {}, "", ""),
    TAKE_BACK: ("Take back", "move", {"to": "ready", "reason": "taken back"}, "", ""),
    ASSIGN: ("Give to", "assign", {}, "to", "The agent that alone may take it; nothing: anyone"),
    NOTE: ("Note", "note", {}, "text", "A line for the work log"),
}
"""Key -> label, action, fields, and the field that a text fills with its prompt."""


def _make(key: str, task: str, more: Mapping[str, Any] | None = None) -> Choice:
    label, action, fields, text_field, prompt = _TASK_CHOICES[key]
    return Choice(
        key,
        label,
        task_path(task, action),
        {**fields, **(more or {})},
        text_field,
        prompt,
        is_text_optional=key == ASSIGN,
    )
