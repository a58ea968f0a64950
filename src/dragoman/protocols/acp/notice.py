"""Notices as ACP messages, and messages as notices (S-NOTICE).

A message about a handoff carries id and hash alone; every other one has a free payload, which says
what its type does not. What has no type of its own is a `status.update`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from dragoman.core.limits import MAX_TITLE
from dragoman.core.notice import (
    Notice,
    NoticeReader,
    Translation,
    present,
    read_notice,
)
from dragoman.protocols.acp.parse import ActionCall
from dragoman.protocols.acp.wire import (
    MAX_PAYLOAD_BYTES,
    Accept,
    Complete,
    Initiate,
    Reject,
    Send,
    Withdraw,
)

# --- messages as notices ----------------------------------------------------------------------


def to_notice(message: ActionCall | Send) -> Notice | None:
    """Read a message or an action as a notice; other actions say nothing to another agent."""
    if isinstance(message, Send):
        return _read_message(message)
    read = _ACTION_READERS.get(cast(type[Any], type(message.arguments)))
    return None if read is None else read(message.arguments)


def _read_message(sent: Send) -> Notice:
    payload = dict(sent.payload)
    stated, issue = payload.pop("kind", None), payload.pop("blocking_issue", None)
    text = payload.pop("text", "")
    kind = stated if isinstance(stated, str) else _KINDS_BY_TYPE.get(sent.type, "message")
    own = {
        "task": sent.task_id,
        "thread": sent.thread_id,
        "sender": sent.from_,
        "recipient": sent.to[0],
        "text": text if isinstance(text, str) else "",
        "question": issue if isinstance(issue, str) else "",
    }
    if sent.type.startswith("handoff."):
        own |= {"handoff": payload["handoff_id"], "package_hash": payload["package_hash"]}
        return read_notice(kind, {}, **own)
    notice = read_notice(kind, payload, **own)
    known = set(notice.__struct_fields__)
    details = {name: value for name, value in payload.items() if name not in known}
    return msgspec.structs.replace(notice, details={**notice.details, **details})


_KINDS_BY_TYPE: Final[Mapping[str, str]] = {
    "handoff.initiate": "offer",
    "handoff.accept": "accepted",
    "handoff.reject": "rejected",
    "handoff.complete": "result",
    "status.update": "progress",
    "status.blocked": "help_asked",
    "status.complete": "result",
    "knowledge.query": "help_asked",
    "knowledge.response": "help_answered",
}


def _read_offer(arguments: Initiate) -> Notice:
    task, context, work = arguments.task, arguments.context, arguments.work_state
    percent = None if work.percent_complete is UNSET else work.percent_complete
    return Notice(
        kind="offer",
        task=task.task_id,
        recipient=arguments.to_agent,
        handoff=arguments.handoff_id,
        thread=arguments.thread_id,
        title=task.title,
        objective=task.objective,
        criteria=task.success_criteria,
        priority=task.priority,
        due_by=arguments.deadline or task.deadline or "",
        text=context.summary,
        constraints=context.constraints,
        next_steps=work.next_step,
        percent=percent,
        status=work.status,
    )


_ACTION_READERS: Final[Mapping[type[Any], Callable[[Any], Notice]]] = {
    Initiate: _read_offer,
    Accept: lambda call: Notice(kind="accepted", handoff=call.handoff_id, text=call.notes),
    Reject: lambda call: Notice(
        kind="rejected",
        handoff=call.handoff_id,
        reason=call.reason,
        text=call.detail,
        recommendation=call.suggested_fix,
    ),
    Complete: lambda call: Notice(
        kind="result", handoff=call.handoff_id, outcome="done", text=call.completion_notes
    ),
    Withdraw: lambda call: Notice(kind="withdrawn", handoff=call.handoff_id, text=call.notes),
}


# --- notices as messages ----------------------------------------------------------------------

_TYPES: Final[Mapping[str, str]] = {
    "accepted": "system.ack",
    "rejected": "system.error",
    "progress": "status.update",
    "help_asked": "status.blocked",
    "help_answered": "knowledge.response",
    "result": "status.complete",
    "failed": "status.blocked",
    "checkpoint": "status.update",
    "message": "knowledge.push",
}
"""Kind -> type of its message; others are notices."""

_HANDOFF_TYPES: Final[Mapping[str, str]] = {
    "offer": "handoff.initiate",
    "accepted": "handoff.accept",
    "rejected": "handoff.reject",
    "result": "handoff.complete",
}
"""Kind -> type of the message about a handoff."""


def from_notice(notice: Notice) -> Translation:
    """Write a notice as a message, or an offer with success criteria as an `initiate`."""
    reader = NoticeReader(notice)
    if notice.kind == "offer" and notice.criteria and notice.task:
        return _write_offer(reader)
    recipient = reader.take("recipient")
    head = {
        "to": [recipient] if recipient else reader.fill("acp.to"),
        **present(
            **{"from": reader.take("sender")},
            task_id=reader.take("task"),
            thread_id=reader.take("thread"),
        ),
    }
    if notice.handoff and notice.package_hash and notice.kind in _HANDOFF_TYPES:
        payload = {
            "handoff_id": reader.take("handoff"),
            "package_hash": reader.take("package_hash"),
        }
        return reader.finish({**head, "type": _HANDOFF_TYPES[notice.kind], "payload": payload})
    type = _TYPES.get(notice.kind, "status.update")
    kind = {} if _KINDS_BY_TYPE.get(type, "message") == notice.kind else {"kind": notice.kind}
    issue = present(blocking_issue=reader.take("question")) if type == "status.blocked" else {}
    text, rest = reader.take("text"), reader.rest()
    rest = {**issue, **rest.pop("details", {}), **rest}
    payload = {**rest, **kind, **present(text=text)}
    if len(msgspec.json.encode(payload)) > MAX_PAYLOAD_BYTES:
        payload = _shortened(reader, rest, kind, text)
    message = {**head, "type": type, "payload": payload}
    return reader.finish(message, is_notice=notice.kind not in _TYPES)


_NOTICE_FIELDS: Final = {"blocking_issue": "question"}
"""Key of a payload -> the field of a notice that it says."""


def _shortened(
    reader: NoticeReader, rest: Mapping[str, Any], kind: Mapping[str, str], text: str
) -> dict[str, Any]:
    """The payload of a notice that is too long: its beginning; the rest is listed as lost."""
    short: dict[str, Any] = dict(kind)
    for name, value in rest.items():
        if len(msgspec.json.encode({**short, name: value})) > MAX_PAYLOAD_BYTES // 2:
            reader.lose(_NOTICE_FIELDS.get(name, name), value)
        else:
            short[name] = value
    room = MAX_PAYLOAD_BYTES - len(msgspec.json.encode({**short, "text": ""}))
    beginning = text
    while len(msgspec.json.encode(beginning)) - 2 > room:
        beginning = beginning[: len(beginning) * 3 // 4]
    if beginning != text:
        reader.lose("text")
    return {**short, **present(text=beginning)}


def _write_offer(reader: NoticeReader) -> Translation:
    notice = reader.notice
    is_long = len(notice.title) > MAX_TITLE
    title = notice.task if is_long else reader.take_or_fill("title", "acp.title", notice.task)
    status = notice.status if notice.status in _WORK_STATES else ""
    if status:
        reader.take("status")
    percent = reader.take("percent") if _is_percent(notice.percent) else None
    constraints = [line for line in reader.take("constraints") if line.strip()]
    priority = reader.take("priority") if notice.priority in _PRIORITIES else ""
    task = {
        "task_id": reader.take("task"),
        "title": title,
        "objective": reader.take_or_fill("objective", "acp.objective", title),
        "success_criteria": [line for line in reader.take("criteria") if line.strip()],
        "priority": priority or reader.fill("acp.priority"),
        **present(deadline=reader.take("due_by")),
    }
    work_state = {
        "status": status or reader.fill("acp.work_state.status"),
        "next_step": reader.take_or_fill("next_steps", "acp.work_state.next_step"),
        **present(percent_complete=percent),
    }
    head = {
        "action": "initiate",
        "to_agent": reader.take_or_fill("recipient", "acp.to", "unknown"),
        **present(handoff_id=reader.take("handoff"), thread_id=reader.take("thread")),
    }
    summary = reader.take_or_fill("text", "acp.context.summary")
    lost = reader.lost_lines()
    return reader.finish(
        {
            **head,
            "task": task,
            "context": {
                "summary": summary,
                "constraints": [*constraints, *lost],
            },
            "work_state": work_state,
        }
    )


_WORK_STATES: Final = frozenset(("not_started", "in_progress", "blocked", "review"))

_PRIORITIES: Final = frozenset(("low", "normal", "high", "critical"))


def _is_percent(value: float | None) -> bool:
    return value is not None and 0 <= value <= 100
