"""Notices as letters, and letters as notices (S-NOTICE).

A notice without a type of its own is a plain letter. What a letter's fields do not say stands
quoted at its end, where no line can act as a label or a heading.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.notice import Notice, NoticeReader, Translation, present
from dragoman.protocols.agentmail.compose import partial_draft, render
from dragoman.protocols.agentmail.parse import Parser
from dragoman.protocols.agentmail.wire import (
    CHECKPOINT_REASONS,
    FAILURE_TYPES,
    ISSUE_TYPES,
    SPAWNED,
    MessageType,
    OutgoingLetter,
    Parsed,
)

# --- letters as notices -----------------------------------------------------------------------


def to_notice(message: OutgoingLetter) -> Notice:
    """Read a letter as a notice."""
    row, letter = message.row, message.message
    parsed = letter.parsed
    head: dict[str, Any] = {
        "task": parsed.bead_id,
        "sender": row.from_,
        "recipient": letter.to[0] if letter.to else "",
        "at": row.timestamp,
        "thread": row.thread_id,
    }
    read = _READERS.get(letter.type)
    if read is None:
        return Notice(**head, kind="message", title=row.subject, text=row.body_md)
    return Notice(**head, **read(parsed))


def _read_completion(parsed: Parsed) -> dict[str, Any]:
    return {
        "kind": "result",
        "outcome": _outcome(parsed.tests_pass, parsed.lint_pass, parsed.build_pass),
        "text": parsed.summary,
        "commit": parsed.commit_sha,
        "files": parsed.files,
        "tests_pass": parsed.tests_pass,
        "lint_pass": parsed.lint_pass,
        "build_pass": parsed.build_pass,
    }


def _outcome(*checks: bool | None) -> str:
    """Outcome that a completion reports: a failed self-check makes it needs_review."""
    return "needs_review" if False in checks else "done"


def _read_spawn_answer(parsed: Parsed) -> dict[str, Any]:
    is_spawned = parsed.status == SPAWNED
    return {"kind": "accepted" if is_spawned else "rejected", "session": parsed.session}


_READERS: Final[Mapping[MessageType, Callable[[Parsed], dict[str, Any]]]] = {
    MessageType.BEAD_ACCEPTED: lambda parsed: {
        "kind": "accepted",
        "title": parsed.title,
        "details": present(started_at=parsed.started_at),
    },
    MessageType.PROGRESS: lambda parsed: {
        "kind": "progress",
        "step": parsed.step,
        "text": parsed.status,
        "context_usage": parsed.context_usage,
        "files": parsed.files_touched,
    },
    MessageType.HELP_REQUEST: lambda parsed: {
        "kind": "help_asked",
        "reason": parsed.issue_type,
        "text": parsed.problem,
        "tried": parsed.what_tried,
        "files": parsed.files_touched,
        "question": parsed.question,
    },
    MessageType.HELP_RESPONSE: lambda parsed: {"kind": "help_answered", "text": parsed.guidance},
    MessageType.OFFERING_READY: _read_completion,
    MessageType.DONE: _read_completion,
    MessageType.FAILED: lambda parsed: {
        "kind": "failed",
        "reason": parsed.failure_type,
        "text": parsed.reason,
        "attempts": parsed.internal_attempts,
        "commit": parsed.partial_commit_sha,
        "files": parsed.files,
        "recommendation": parsed.recommendation,
    },
    MessageType.CHECKPOINT: lambda parsed: {
        "kind": "checkpoint",
        "reason": parsed.checkpoint_reason,
        "commit": parsed.partial_commit_sha,
        "text": parsed.progress,
        "context_usage": parsed.context_usage,
        "next_steps": parsed.next_steps,
    },
    MessageType.SPAWN_REQUEST: lambda parsed: {
        "kind": "offer",
        "resume": parsed.resume,
        "commit": parsed.partial_commit_sha,
        "orchestrator": parsed.orchestrator,
    },
    MessageType.SPAWN_ACK: _read_spawn_answer,
}
"""Type -> its fields in a notice; others are plain messages."""


# --- notices as letters -----------------------------------------------------------------------

_FIELDS: Final[Mapping[str, tuple[MessageType, Mapping[str, str]]]] = {
    "accepted": (MessageType.BEAD_ACCEPTED, {"title": "title"}),
    "progress": (
        MessageType.PROGRESS,
        {
            "step": "step",
            "text": "status",
            "context_usage": "context_usage",
            "files": "files_touched",
        },
    ),
    "help_asked": (
        MessageType.HELP_REQUEST,
        {
            "reason": "issue_type",
            "text": "problem",
            "tried": "what_tried",
            "files": "files_touched",
            "question": "question",
        },
    ),
    "help_answered": (MessageType.HELP_RESPONSE, {"text": "guidance"}),
    "result": (
        MessageType.OFFERING_READY,
        {
            "commit": "commit_sha",
            "files": "files",
            "tests_pass": "tests_pass",
            "lint_pass": "lint_pass",
            "build_pass": "build_pass",
            "text": "summary",
        },
    ),
    "failed": (
        MessageType.FAILED,
        {
            "reason": "failure_type",
            "text": "reason",
            "attempts": "internal_attempts",
            "commit": "partial_commit_sha",
            "files": "files",
            "recommendation": "recommendation",
        },
    ),
    "checkpoint": (
        MessageType.CHECKPOINT,
        {
            "reason": "checkpoint_reason",
            "commit": "partial_commit_sha",
            "text": "progress",
            "context_usage": "context_usage",
            "next_steps": "next_steps",
        },
    ),
    "offer": (
        MessageType.SPAWN_REQUEST,
        {
            "resume": "resume",
            "commit": "partial_commit_sha",
            "orchestrator": "orchestrator",
        },
    ),
    "rejected": (MessageType.SPAWN_ACK, {"session": "session"}),
}
"""Kind -> the type of its letter, and field of the notice -> field of the letter."""

_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "help_asked": ISSUE_TYPES,
    "failed": FAILURE_TYPES,
    "checkpoint": CHECKPOINT_REASONS,
}
"""Kind -> the reasons that its letter can state."""


def from_notice(notice: Notice) -> Translation:
    """Write a notice as a letter."""
    reader = NoticeReader(notice)
    bead = reader.take("task")
    if notice.kind not in _FIELDS or (notice.kind == "help_answered" and not bead):
        return _write_plain(reader, bead)
    is_spawned = notice.kind == "accepted" and bool(notice.session) and not notice.title
    type, names = _FIELDS["rejected" if is_spawned else notice.kind]
    if notice.kind == "result":
        type = MessageType.DONE if notice.outcome == "done" else type
        if notice.outcome == _outcome(notice.tests_pass, notice.lint_pass, notice.build_pass):
            reader.take("outcome")
    values = {own: reader.take(name) for name, own in names.items() if _can_say(notice, name)}
    values |= present(started_at=reader.take_detail("started_at"))
    if type is MessageType.SPAWN_ACK:
        values["status"] = SPAWNED if is_spawned else "failed"
    draft = partial_draft(type, bead, values)
    for name, own in names.items():
        if own in values and values[own] not in ("", getattr(draft.parsed, own)):
            reader.lose(name)
    rendered = render(draft)
    return _finish(reader, rendered.subject, rendered.body_md)


def _can_say(notice: Notice, name: str) -> bool:
    allowed = _REASONS.get(notice.kind) if name == "reason" else None
    return allowed is None or notice.reason in allowed


_parser: Final = Parser()


def _write_plain(reader: NoticeReader, bead: str) -> Translation:
    """Write a letter without a type: its subject says its kind in small letters.

    Words that would name a type or another bead are quoted.
    """
    notice = reader.notice
    words = notice.kind.replace("_", " ")
    plain = f"[{bead}] {words}" if bead else words
    is_notice = notice.kind != "message"
    title, text = ("" if is_notice else notice.title), notice.text
    for subject in filter(None, (title, f"[{bead}] {title}" if bead and title else "", plain)):
        parsed = _parser.parse({"subject": subject, "body_md": text})
        if parsed.type is MessageType.UNKNOWN and parsed.bead_id == bead:
            reader.take("text")
            if subject == title:
                reader.take("title")
            return _finish(reader, subject, text, is_notice=is_notice)
    return _finish(reader, plain, "", is_notice=is_notice)


def _finish(
    reader: NoticeReader, subject: str, body: str, *, is_notice: bool = False
) -> Translation:
    sender, recipient = reader.take("sender"), reader.take("recipient")
    at, thread = reader.take("at"), reader.take("thread")
    lines = reader.lost_lines()
    quoted = "\n".join(f"> {line}" for text in lines for line in text.splitlines())
    return reader.finish(
        {
            "subject": subject,
            "body_md": f"{body}\n## Notes\n\n{quoted}\n" if quoted else body,
            **present(
                **{"from": sender},
                to=[recipient] if recipient else [],
                thread_id=thread,
                timestamp=at,
            ),
        },
        is_notice=is_notice,
    )
