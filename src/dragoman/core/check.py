"""Decisions about checks: which results count, and what becomes of work whose checks failed."""

from dragoman.core.backoff import backoff_delay
from dragoman.core.check_state import CheckResult, RecordChecks, TaskChecked
from dragoman.core.errors import Refusal
from dragoman.core.ids import task_stream
from dragoman.core.limits import MAX_REASON
from dragoman.core.read import Decision, Read, StreamEvents, task_receipt
from dragoman.core.task import send_back_events, transition_events
from dragoman.core.task_state import CHECKS_PASSED_REASON
from dragoman.core.timestamps import clamp_timestamp


def decide_record_checks(command: RecordChecks, read: Read, now: int) -> Decision | Refusal:
    """Record the results of checks: work that passed is proven, work that failed goes back.

    Results that come too late change nothing: the work went on, or another hub was faster.
    """
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    if read.actor.role != "system":
        return Refusal("not_authorized", f"{read.actor.label} may not record checks: the hub does")
    if not task.awaits_checks or command.attempt != task.attempts:
        return Decision(task_receipt(task, task.status))
    failed = next((one for one in command.results if not one.has_passed), None)
    event = TaskChecked(command.attempt, failed is None, command.results)
    checked: StreamEvents = ((task_stream(task.id), event),)
    is_done = task.reported is None or task.reported.outcome == "done"
    if failed is None and (task.review_required or not is_done):
        return Decision(task_receipt(task, task.status), checked)
    if failed is None:
        done = transition_events(task, "done", CHECKS_PASSED_REASON, read)
        return Decision(task_receipt(task, "done"), (*checked, *done))
    reason = describe_failure(failed)
    if task.failed_checks + 1 >= task.max_attempts:
        blocked = transition_events(task, "blocked", reason, read)
        return Decision(task_receipt(task, "blocked"), (*checked, *blocked))
    not_before = clamp_timestamp(now + backoff_delay(task.failed_checks + 1, command.backoff))
    sent_back = send_back_events(task, reason, not_before)
    return Decision(task_receipt(task, "ready"), (*checked, *sent_back))


def describe_failure(failed: CheckResult) -> str:
    """Describe a failed check to whoever has to mend the work, with the end of its output."""
    how = failed.problem or f"exit code {failed.exit_code}"
    heading = f"the check `{failed.command}` failed: {how}"
    output = failed.output.strip()
    if not output:
        return heading[:MAX_REASON]
    room = MAX_REASON - len(heading) - 1
    return f"{heading}\n{output[-room:]}" if room > 0 else heading[:MAX_REASON]
