"""What came of a message, in words: each command that it led to, and where its task stands now."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dragoman.core.commands import (
    AcceptDelegation,
    AnyCommand,
    EndAttempt,
    PostMail,
    RejectDelegation,
    ReportOutcome,
    RequestDelegation,
    UpdateTask,
)
from dragoman.core.errors import Refusal
from dragoman.core.ids import handoff_stream
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.task import CLAIMABLE_STATUSES

if TYPE_CHECKING:
    from dragoman.core.reading import Receipt
    from dragoman.core.states.task import Task
    from dragoman.engine.plan import Accepted
    from dragoman.engine.ports import Store
    from dragoman.engine.reads.ask import TaskView


_HANDOFF_PREFIX = handoff_stream("")


def describe_effects(store: "Store", accepted: "Accepted") -> Iterator[str]:
    """Sentences on what each command of a message did or will do; none for a repeat."""
    from dragoman.engine.reads.ask import find_task

    if accepted.repeated:
        return
    for command, receipt in zip(accepted.commands, accepted.receipts, strict=True):
        if isinstance(command, PostMail):
            yield _mail_posted_text(command, receipt)
            continue
        if receipt.stream.startswith(_HANDOFF_PREFIX):
            yield f"handoff {receipt.stream.removeprefix(_HANDOFF_PREFIX)} is {receipt.state}"
            continue
        view = find_task(store, receipt.task)
        describe = EFFECT_TEXT.get(type(command))
        text = (
            describe(command, receipt, view) if describe and not isinstance(view, Refusal) else ""
        )
        if text:
            yield text


def current_statuses(store: "Store", accepted: "Accepted") -> dict[str, str]:
    """Task -> its current status, which for a repeat may differ from the status of then."""
    from dragoman.engine.reads.ask import find_task

    views = [find_task(store, receipt.task) for receipt in accepted.receipts if receipt.task]
    return {view.task.id: view.task.status for view in views if not isinstance(view, Refusal)}


def _mail_posted_text(command: PostMail, receipt: "Receipt") -> str:
    return f"letter {receipt.stream.partition(':')[2]} is in the inbox of {', '.join(command.to)}"


def _reported_text(command: ReportOutcome, receipt: "Receipt", view: "TaskView") -> str:
    if receipt.idle:
        return f"{receipt.task} was {receipt.status} already: the report changes nothing"
    if receipt.status == "in-progress":
        return f"{command.outcome} is on record: {receipt.task} moves when {_report_trigger(view)}"
    return f"{command.outcome} is on record and {receipt.task} has moved: {receipt.status}"


def _updated_text(command: UpdateTask, _: "Receipt", __: "TaskView") -> str:
    if command.to is not None:
        return ""  # the status is printed anyway, and an illegal transition is a warning
    has_text = bool(command.progress or command.notes or command.blockers)
    return "written into the work log" if has_text else "nothing was changed"


def _delegation_requested_text(
    command: RequestDelegation, receipt: "Receipt", _: "TaskView"
) -> str:
    return (
        f"{receipt.task} is handed to {command.to_agent} as a part of {command.parent}, due by "
        f"{to_rfc3339(command.due_by)}; see inputs/handoff.json and inputs/handoff.md"
    )


def _delegation_accepted_text(_: AcceptDelegation, receipt: "Receipt", view: "TaskView") -> str:
    delegation = view.task.delegation
    sender = f" from {delegation.from_agent}" if delegation is not None else ""
    return f"the handoff of {receipt.task}{sender} is accepted; {_next_step(view.task)}"


def _next_step(task: "Task") -> str:
    """The step that starts the work on a part, or what it waits for."""
    if task.open_blockers:
        return f"it waits for {', '.join(task.open_blockers)}"
    return (
        "a claim begins the work" if task.status in CLAIMABLE_STATUSES else f"it is {task.status}"
    )


def _delegation_rejected_text(command: RejectDelegation, receipt: "Receipt", _: "TaskView") -> str:
    reason = f" ({command.reason})" if command.reason else ""
    return f"the handoff of {receipt.task} is rejected{reason}"


def _session_ended_text(_: EndAttempt, receipt: "Receipt", view: "TaskView") -> str:
    if receipt.remark:  # the session had lost the lease before
        by_report = "`dragoman tick` decides by what was reported until then"
        return f"{receipt.task} is {receipt.status}: {receipt.remark}; {by_report}"
    if receipt.status == "in-progress" and view.lease is not None:
        until = to_rfc3339(view.lease.expires_at)
        return f"{receipt.task} has no report: it stays in-progress until its lease ends ({until})"
    return f"{receipt.task} is {receipt.status}"


def _report_trigger(view: "TaskView") -> str:
    """The event that lets a report take effect."""
    lease = view.lease
    if lease is None:  # another command has ended the attempt meanwhile
        return "its attempt is over"
    return f"session {lease.session} is ended, or its lease ends ({to_rfc3339(lease.expires_at)})"


EFFECT_TEXT: dict[type[AnyCommand], Callable[[Any, Any, Any], str]] = {
    ReportOutcome: _reported_text,
    UpdateTask: _updated_text,
    RequestDelegation: _delegation_requested_text,
    AcceptDelegation: _delegation_accepted_text,
    RejectDelegation: _delegation_rejected_text,
    EndAttempt: _session_ended_text,
}
"""Command -> its sentence, or empty; warnings are printed separately."""
