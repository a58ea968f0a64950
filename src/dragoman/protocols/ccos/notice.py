"""Notices as CCOS messages, and messages as notices (S-NOTICE).

A notice that is neither a request nor its result nor an update travels as a TaskRequest whose
`meta.kind` says what it is.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec import UNSET

from dragoman.core.notice import Notice, NoticeReader, Translation, present, read_notice
from dragoman.protocols.ccos.parse import InvalidResult
from dragoman.protocols.ccos.wire import TaskRequest, TaskResult, TaskUpdate

Message = TaskRequest | TaskResult | TaskUpdate

# --- messages as notices ----------------------------------------------------------------------

_NOTICE: Final = "notice"
"""Key of `meta` that holds what the fields of a message do not say."""


def to_notice(message: Message | InvalidResult) -> Notice | None:
    """Read a message as a notice; a result without a valid shape says nothing."""
    if isinstance(message, InvalidResult):
        return None
    meta = dict(message.meta or {})
    kind, stated = meta.pop("kind", None), meta.pop(_NOTICE, None)
    own_kind, own = _read(message)
    head = {
        "task": message.intent_id,
        "request": message.request_id or "",
        "details": present(
            attempt=None if message.attempt is UNSET else message.attempt, meta=meta
        ),
    }
    known = cast(dict[str, Any], stated) if isinstance(stated, dict) else {}
    if "outcome" in known:
        own.pop("outcome", None)
    if own_kind == "offer" and "text" in known:
        # What led to the goal stands beside it.
        own["objective"] = own.pop("text")
    return read_notice(
        kind if isinstance(kind, str) else own_kind,
        known,
        **head,
        **own,
    )


def _read(message: Message) -> tuple[str, dict[str, Any]]:
    """Kind of a message, and its own fields."""
    if isinstance(message, TaskRequest):
        return "offer", {
            "recipient": message.agent_id,
            "text": message.goal,
            "params": message.params,
            "due_by": message.deadline or "",
        }
    sender = {"sender": message.agent_id}
    if isinstance(message, TaskUpdate):
        progress = None if message.progress is UNSET else message.progress
        return "progress", {**sender, "percent": progress, "text": message.message or ""}
    if message.success:
        is_text = isinstance(message.output, str)
        said = {"text" if is_text else "output": message.output}
        return "result", {**sender, "outcome": "done", **said}
    return "failed", {**sender, "text": message.error or ""}


# --- notices as messages ----------------------------------------------------------------------


def from_notice(notice: Notice) -> Translation:
    """Write a notice as a message."""
    reader = NoticeReader(notice)
    task = reader.take("task")
    if not task:
        return Translation(None, reason="it names no task, and CCOS speaks of nothing else")
    attempt, stated = reader.take_detail("attempt"), reader.take_detail("meta")
    write = _WRITERS.get(notice.kind, _write_request)
    fields = write(reader)
    is_notice = notice.kind not in _WRITERS
    kind = {} if notice.kind in _OWN_KINDS else {"kind": notice.kind}
    rest = reader.rest()
    own = cast(dict[str, Any], stated) if isinstance(stated, dict) else {}
    meta = {**own, **kind, **present(notice=rest)}
    message = {
        "intent_id": task,
        **fields,
        **present(request_id=reader.take("request"), attempt=attempt, meta=meta),
    }
    return reader.finish(message, is_notice=is_notice)


def _write_request(reader: NoticeReader) -> dict[str, Any]:
    notice = reader.notice
    has_both = bool(notice.objective.strip() and notice.text.strip())
    goal = reader.take("objective" if has_both else "text")
    return {
        "agent_id": reader.take_or_fill("recipient", "ccos.agent_id"),
        "goal": goal if goal.strip() else reader.fill("ccos.goal", notice.title or None),
        "params": dict(reader.take("params")),
        **present(deadline=reader.take("due_by")),
    }


def _write_result(reader: NoticeReader) -> dict[str, Any]:
    output = reader.take("output")
    text = reader.take("text") if output is None else ""
    if reader.notice.outcome == "done":
        reader.take("outcome")
    return {
        "agent_id": reader.take_or_fill("sender", "ccos.agent_id"),
        "success": True,
        "output": text if output is None else output,
    }


def _write_failure(reader: NoticeReader) -> dict[str, Any]:
    text = reader.take("text")
    return {
        "agent_id": reader.take_or_fill("sender", "ccos.agent_id"),
        "success": False,
        "error": text if text.strip() else reader.fill("ccos.error", reader.notice.reason or None),
    }


def _write_update(reader: NoticeReader) -> dict[str, Any]:
    percent, text = reader.take("percent"), reader.take("text")
    has_words = percent is not None or text.strip()
    return {
        "agent_id": reader.take_or_fill("sender", "ccos.agent_id"),
        **present(progress=percent),
        **({"message": text} if text.strip() else {}),
        **({} if has_words else {"message": reader.fill("ccos.goal")}),
    }


_WRITERS: Final[Mapping[str, Callable[[NoticeReader], dict[str, Any]]]] = {
    "offer": _write_request,
    "progress": _write_update,
    "result": _write_result,
    "failed": _write_failure,
    "rejected": _write_failure,
}
"""Kind -> its message; others are notices."""

_OWN_KINDS: Final = frozenset(("offer", "progress", "result", "failed"))
"""Kinds that the message itself says."""
