"""Notices as AOF/1 messages, and messages as notices (S-NOTICE).

A notice that AOF has no message for is a status.update whose notes say it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from msgspec import UNSET, UnsetType

from dragoman.core.base import Status
from dragoman.core.ids import is_aof_id
from dragoman.core.limits import MAX_LINKS, MAX_REASON, MAX_TEXT
from dragoman.core.notice import Notice, NoticeReader, Translation, present
from dragoman.protocols.aof.translate import string_list
from dragoman.protocols.aof.wire import (
    CompleteTaskArguments,
    CompletionReportMessage,
    HandoffAcceptedMessage,
    HandoffRejectedMessage,
    HandoffRequestMessage,
    Message,
    ReportFields,
    StatusUpdateMessage,
)
from dragoman.text.repository_paths import check_path

# --- messages as notices ----------------------------------------------------------------------


def to_notice(message: Message | CompleteTaskArguments) -> Notice:
    """Read a message, or a report without an envelope, as a notice."""
    if isinstance(message, CompleteTaskArguments):
        return _read_report(message, {"task": message.task_id})
    recipient = "" if message.to_agent == "dispatcher" else message.to_agent
    return _READERS[type(message)](
        message,
        {
            "task": message.task_id,
            "sender": message.from_agent,
            "recipient": recipient,
            "at": message.sent_at,
            "details": present(project_id=_stated(message.project_id)),
        },
    )


def _read_completion(message: CompletionReportMessage, head: Mapping[str, Any]) -> Notice:
    return _read_report(message.payload, head)


def _read_report(payload: ReportFields, head: Mapping[str, Any]) -> Notice:
    kind, outcome = _KINDS_OF_OUTCOME[payload.outcome]
    tests = payload.tests
    return Notice(
        **head,
        kind=kind,
        outcome=outcome,
        text=payload.notes,
        blockers=payload.blockers or (),
        files=payload.deliverables or (),
        tests=(tests.total, tests.passed, tests.failed),
        summary_ref=payload.summary_ref,
        handoff_ref=payload.handoff_ref or "",
    )


_KINDS_OF_OUTCOME: Final[Mapping[str, tuple[Any, str]]] = {
    "done": ("result", "done"),
    "needs_review": ("result", "needs_review"),
    "partial": ("checkpoint", "partial"),
    "blocked": ("failed", ""),
}


def _read_status(message: StatusUpdateMessage, head: Mapping[str, Any]) -> Notice:
    payload = message.payload
    status = _stated(payload.status)
    blockers = list(payload.blockers or ())
    kind = _KINDS_OF_STATUS.get(status, "progress")
    is_question = kind == "help_asked" and len(blockers) == 1
    return Notice(
        **head,
        kind=kind,
        status=status if kind == "progress" else "",
        text=_stated(payload.progress),
        notes=_stated(payload.notes),
        question=blockers[0] if is_question else "",
        blockers=() if is_question else tuple(blockers),
    )


_KINDS_OF_STATUS: Final[Mapping[str, Any]] = {"blocked": "help_asked", "ready": "checkpoint"}


def _read_request(message: HandoffRequestMessage, head: Mapping[str, Any]) -> Notice:
    payload = message.payload
    return Notice(
        **head,
        kind="offer",
        parent=payload.parent_task_id,
        due_by=payload.due_by,
        criteria=string_list(payload.acceptance_criteria) or (),
        outputs=payload.expected_outputs or (),
        refs=payload.context_refs or (),
        constraints=payload.constraints or (),
    )


def _read_acceptance(message: HandoffAcceptedMessage, head: Mapping[str, Any]) -> Notice:
    return Notice(**head, kind="accepted", text=_stated(message.payload.reason))


def _read_rejection(message: HandoffRejectedMessage, head: Mapping[str, Any]) -> Notice:
    return Notice(**head, kind="rejected", text=_stated(message.payload.reason))


_READERS: Final[Mapping[type[Any], Callable[[Any, Mapping[str, Any]], Notice]]] = {
    CompletionReportMessage: _read_completion,
    StatusUpdateMessage: _read_status,
    HandoffRequestMessage: _read_request,
    HandoffAcceptedMessage: _read_acceptance,
    HandoffRejectedMessage: _read_rejection,
}


def _stated(value: str | UnsetType) -> str:
    return "" if value is UNSET else str(value)


# --- notices as messages ----------------------------------------------------------------------


def from_notice(notice: Notice) -> Translation:
    """Write a notice as a message."""
    task = notice.aof_id or notice.task
    if not is_aof_id(task):
        return Translation(
            None, reason=f"{task[:80]!a} is no AOF task id, and AOF/1 names tasks by nothing else"
        )
    reader = NoticeReader(notice)
    for name in ("task", "aof_id") if notice.aof_id in ("", notice.task) else ("aof_id",):
        reader.take(name)
    project = reader.take_detail("project_id")
    kind, payload, is_notice = _WRITERS.get(notice.kind, _write_note)(reader, task)
    message: dict[str, Any] = {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": task,
        "fromAgent": reader.take_or_fill("sender", "aof.fromAgent"),
        "toAgent": reader.take_or_fill("recipient", "aof.toAgent"),
        "sentAt": reader.take_or_fill("at", "aof.sentAt"),
        "payload": {"taskId": task, **payload},
        **present(projectId=project),
    }
    if kind == "handoff.request":
        message["payload"] |= {
            "fromAgent": message["fromAgent"],
            "toAgent": message["toAgent"],
        }
    return reader.finish(message, is_notice=is_notice)


Written = tuple[str, dict[str, Any], bool]
"""Type, payload, and whether it is a notice in place of a message."""


def _with_lost(text: str, reader: NoticeReader) -> str:
    """A free text, and after it what the message says nowhere else."""
    for name in ("sender", "recipient", "at"):
        reader.take(name)
    lines = "\n".join(reader.lost_lines())
    return "\n\n".join(filter(None, (text, lines)))[:MAX_TEXT]


def _bounded(reader: NoticeReader, name: str, limit: int) -> str:
    """A text that is not too long; a longer one is lost, and stands shortened in the notes."""
    text: str = reader.take(name)
    if len(text) <= limit:
        return text
    reader.lose(name)
    return ""


def _write_report(reader: NoticeReader, outcome: str) -> Written:
    tests = reader.take("tests")
    files = reader.notice.files
    are_paths = all(check_path(path) is None and len(path) <= MAX_REASON for path in files)
    deliverables = reader.take("files") if are_paths else ()
    summary = reader.take_or_fill("summary_ref", "aof.summaryRef")
    handoff = reader.take("handoff_ref")
    is_blocked = outcome == "blocked"
    blockers = _required_blockers(reader) if is_blocked else _stated_blockers(reader)
    text = _bounded(reader, "text", MAX_TEXT) or reader.fill("aof.notes")
    return (
        "completion.report",
        {
            "outcome": outcome,
            "summaryRef": summary,
            "tests": reader.fill("aof.tests")
            if tests is None
            else dict(zip(("total", "passed", "failed"), tests, strict=True)),
            **present(handoffRef=handoff, deliverables=deliverables, blockers=blockers),
            "notes": _with_lost(text, reader),
        },
        False,
    )


def _stated_blockers(reader: NoticeReader) -> tuple[str, ...]:
    """Blockers within AOF's bounds; others are lost."""
    blockers: tuple[str, ...] = reader.take("blockers")
    if len(blockers) <= MAX_LINKS and all(len(item) <= MAX_REASON for item in blockers):
        return blockers
    reader.lose("blockers")
    return ()


def _required_blockers(reader: NoticeReader) -> tuple[str, ...] | list[str]:
    """Blockers of a blocked task: as stated, else its reason, else the neutral value."""
    blockers = _stated_blockers(reader)
    if any(map(str.strip, blockers)):
        return blockers
    reason = reader.notice.reason
    if reason.strip() and len(reason) <= MAX_REASON:
        reader.lose("reason")
        return (reason,)
    return reader.fill("aof.blockers")


def _write_result(reader: NoticeReader, task: str) -> Written:
    del task
    is_stated = reader.notice.outcome in ("done", "needs_review")
    return _write_report(reader, reader.take("outcome") if is_stated else "done")


def _write_failure(reader: NoticeReader, task: str) -> Written:
    del task
    return _write_report(reader, "blocked")


def _write_checkpoint(reader: NoticeReader, task: str) -> Written:
    if reader.notice.outcome == "partial":
        return _write_report(reader, reader.take("outcome"))
    return _write_status(reader, task, status="ready")


def _write_help(reader: NoticeReader, task: str) -> Written:
    question = reader.notice.question
    if reader.notice.blockers or not question.strip() or len(question) > MAX_REASON:
        blockers = _required_blockers(reader)
        if len(reader.notice.blockers) == 1:
            reader.lose("blockers")
    else:
        blockers = (reader.take("question"),)
    return _write_status(reader, task, status="blocked", blockers=blockers)


def _write_status(
    reader: NoticeReader,
    task: str,
    status: str = "",
    blockers: Any = (),
    *,
    is_notice: bool = False,
) -> Written:
    del task
    is_status = not status and reader.notice.status in _STATUSES
    stated = reader.take("status") if is_status else status
    progress = _bounded(reader, "text", MAX_TEXT)
    named = blockers or _stated_blockers(reader)
    notes = _with_lost(_bounded(reader, "notes", MAX_TEXT), reader)
    payload = present(status=stated, progress=progress, blockers=named, notes=notes)
    if not payload:
        payload = {"notes": reader.fill("aof.notes")}
    return (
        "status.update",
        {"agentId": reader.notice.sender or "unknown", **payload},
        is_notice,
    )


_STATUSES: Final = frozenset(get_args(Status)) - {"blocked", "ready"}
"""Statuses of an update that say nothing else."""


def _write_note(reader: NoticeReader, task: str) -> Written:
    reader.lose("kind")
    if reader.notice.kind == "message":
        # Words that say nothing of the task are no progress of it.
        words = _with_lost(_bounded(reader, "text", MAX_TEXT), reader)
        payload = {"agentId": reader.notice.sender or "unknown", "notes": words}
        return "status.update", payload, True
    return _write_status(reader, task, is_notice=True)


def _write_offer(reader: NoticeReader, task: str) -> Written:
    notice = reader.notice
    if not (is_aof_id(notice.parent) and notice.due_by):
        return _write_note(reader, task)
    refs = (*notice.outputs, *notice.refs)
    are_paths = all(check_path(path) is None for path in refs)
    payload = present(
        parentTaskId=reader.take("parent"),
        dueBy=reader.take("due_by"),
        acceptanceCriteria=reader.take("criteria"),
        expectedOutputs=reader.take("outputs") if are_paths else (),
        contextRefs=reader.take("refs") if are_paths else (),
    )
    constraints = reader.take("constraints")
    for name in ("sender", "recipient", "at"):
        reader.take(name)
    lost = tuple(line[:MAX_REASON] for line in reader.lost_lines())
    return (
        "handoff.request",
        {**payload, **present(constraints=(*constraints, *lost)[:MAX_LINKS])},
        False,
    )


def _write_acceptance(reader: NoticeReader, task: str) -> Written:
    return _write_answer(reader, task, accepted=True)


def _write_rejection(reader: NoticeReader, task: str) -> Written:
    return _write_answer(reader, task, accepted=False)


def _write_answer(reader: NoticeReader, task: str, *, accepted: bool) -> Written:
    del task
    reason = _with_lost(_bounded(reader, "text", MAX_REASON), reader)[:MAX_REASON]
    kind = "handoff.accepted" if accepted else "handoff.rejected"
    return kind, {"accepted": accepted, **present(reason=reason)}, False


_WRITERS: Final[Mapping[str, Callable[[NoticeReader, str], Written]]] = {
    "offer": _write_offer,
    "accepted": _write_acceptance,
    "rejected": _write_rejection,
    "progress": _write_status,
    "help_asked": _write_help,
    "result": _write_result,
    "failed": _write_failure,
    "checkpoint": _write_checkpoint,
}
"""Kind -> its message; others are notes."""
