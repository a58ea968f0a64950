"""Claims: what a letter states about a task, which is delivered as a fact only if it may be one.

A letter whose effect was refused, or that had none because its sender has no part in the task, is
told in plain words: who wrote it, that it changed nothing, and why.
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from dragoman.core.actor import HUB_NAME, CommandRefused
from dragoman.core.handoff.state import HandoffNoted, HandoffRejected
from dragoman.core.intent.state import IntentAnomaly
from dragoman.core.notice import Notice
from dragoman.core.task_state import Task

_WORDS: Final = frozenset(("message", "help_answered"))
"""Kinds that state nothing about a task."""

_ENDINGS: Final = frozenset(("result", "checkpoint"))
"""Kinds that only the holder of a task can state without an effect."""


def settle_claim(
    notice: Notice,
    task: Task | None,
    request: Iterable[Any],
    parties: Iterable[str],
    *,
    is_applied: bool,
) -> Notice:
    """The notice of a letter as it may be told, which is another one if it changed nothing.

    `request`: all events of its request; `is_applied`: some of them changed its task; `parties`:
    everybody who has a part in the task.
    """
    code = next((code for event in request if (code := _refusal_code(event))), "")
    if notice.kind == "message" or (notice.kind in _WORDS and not code):
        return notice
    if code in ("", "nothing_changed") and (is_applied or _may_state(notice, task, parties)):
        return notice
    reason = code or ("task_not_found" if task is None else "unauthorized_agent")
    words = "; ".join(filter(None, (notice.text, notice.question, *notice.blockers)))
    said = f'{notice.sender} wrote "{notice.kind}", which changed nothing ({reason})'
    plain = Notice(kind="message", text=f"{said}: {words}" if words else said)
    return replace(plain, aof_id=notice.aof_id, sender=notice.sender, at=notice.at)


def _refusal_code(event: Any) -> str:
    """The code of the refusal that an event records; empty: it records none."""
    if isinstance(event, CommandRefused):
        return event.code
    if isinstance(event, HandoffRejected) and event.by == HUB_NAME:
        return event.reason
    if isinstance(event, HandoffNoted) and event.kind == "waiting":
        return "not_ready"
    return "anomaly" if isinstance(event, IntentAnomaly) else ""


def _may_state(notice: Notice, task: Task | None, parties: Iterable[str]) -> bool:
    """True if the sender's word about the task counts without an effect."""
    if task is None:
        return False
    if notice.sender == task.assignee:
        return True
    if notice.kind in _ENDINGS:
        return task.status == "done" and notice.sender == task.ended_by
    return notice.sender in parties
