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
from dragoman.core.states.task import CLAIMABLE

if TYPE_CHECKING:
    from dragoman.core.reading import Receipt
    from dragoman.core.states.task import Task
    from dragoman.engine.plan import Taken
    from dragoman.engine.ports import Store
    from dragoman.engine.reads.ask import TaskView


_HANDOFF = handoff_stream("")


def effects(store: "Store", answer: "Taken") -> Iterator[str]:
    """Sentences on what each command of a message did or will do; none for a repeat."""
    from dragoman.engine.reads.ask import find_task

    if answer.repeated:
        return
    for command, receipt in zip(answer.commands, answer.receipts, strict=True):
        if isinstance(command, PostMail):
            yield _posted(command, receipt)
            continue
        if receipt.stream.startswith(_HANDOFF):
            yield f"handoff {receipt.stream.removeprefix(_HANDOFF)} is {receipt.state}"
            continue
        view = find_task(store, receipt.task)
        tell = EFFECTS.get(type(command))
        told = tell(command, receipt, view) if tell and not isinstance(view, Refusal) else ""
        if told:
            yield told


def statuses_now(store: "Store", answer: "Taken") -> dict[str, str]:
    """Task -> its current status, which for a repeat may differ from the status of then."""
    from dragoman.engine.reads.ask import find_task

    views = [find_task(store, receipt.task) for receipt in answer.receipts if receipt.task]
    return {view.task.id: view.task.status for view in views if not isinstance(view, Refusal)}


def _posted(command: PostMail, receipt: "Receipt") -> str:
    return f"letter {receipt.stream.partition(':')[2]} is in the inbox of {', '.join(command.to)}"


def _reported(command: ReportOutcome, receipt: "Receipt", view: "TaskView") -> str:
    if receipt.idle:
        return f"{receipt.task} was {receipt.status} already: the report changes nothing"
    if receipt.status == "in-progress":
        return f"{command.outcome} is on record: {receipt.task} moves when {_end(view)}"
    return f"{command.outcome} is on record and {receipt.task} has moved: {receipt.status}"


def _updated(command: UpdateTask, _: "Receipt", __: "TaskView") -> str:
    if command.to is not None:
        return ""  # the status is printed anyway, and an illegal transition is a warning
    has_text = bool(command.progress or command.notes or command.blockers)
    return "written into the work log" if has_text else "nothing was changed"


def _requested(command: RequestDelegation, receipt: "Receipt", _: "TaskView") -> str:
    return (
        f"{receipt.task} is handed to {command.to_agent} as a part of {command.parent}, due by "
        f"{to_rfc3339(command.due_by)}; see inputs/handoff.json and inputs/handoff.md"
    )


def _accepted(_: AcceptDelegation, receipt: "Receipt", view: "TaskView") -> str:
    asked = view.task.delegation
    whom = f" from {asked.from_agent}" if asked is not None else ""
    return f"the handoff of {receipt.task}{whom} is accepted; {_next_step(view.task)}"


def _next_step(task: "Task") -> str:
    """The step that starts the work on a part, or what it waits for."""
    if task.open_blockers:
        return f"it waits for {', '.join(task.open_blockers)}"
    return "a claim begins the work" if task.status in CLAIMABLE else f"it is {task.status}"


def _rejected(command: RejectDelegation, receipt: "Receipt", _: "TaskView") -> str:
    why = f" ({command.reason})" if command.reason else ""
    return f"the handoff of {receipt.task} is rejected{why}"


def _ended(_: EndAttempt, receipt: "Receipt", view: "TaskView") -> str:
    if receipt.remark:  # the session had lost the lease before
        by_report = "`dragoman tick` decides by what was reported until then"
        return f"{receipt.task} is {receipt.status}: {receipt.remark}; {by_report}"
    if receipt.status == "in-progress" and view.lease is not None:
        until = to_rfc3339(view.lease.expires_at)
        return f"{receipt.task} has no report: it stays in-progress until its lease ends ({until})"
    return f"{receipt.task} is {receipt.status}"


def _end(view: "TaskView") -> str:
    """The event that lets a report take effect."""
    lease = view.lease
    if lease is None:  # another command has ended the attempt meanwhile
        return "its attempt is over"
    return f"session {lease.session} is ended, or its lease ends ({to_rfc3339(lease.expires_at)})"


EFFECTS: dict[type[AnyCommand], Callable[[Any, Any, Any], str]] = {
    ReportOutcome: _reported,
    UpdateTask: _updated,
    RequestDelegation: _requested,
    AcceptDelegation: _accepted,
    RejectDelegation: _rejected,
    EndAttempt: _ended,
}
"""Command -> its sentence, or empty; warnings are printed separately."""
